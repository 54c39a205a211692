package mutants

import (
	"fmt"
	"slices"
)

const (
	law     = "capabilities/decide.go"
	filesGo = "capabilities/files/"
	wasiGo  = "runtime/wasi/"
	engine  = "runtime/"

	changes = "	case OpWrite, OpTruncate, OpCreate, OpMkdir, OpRmdir, OpUnlink, OpRename, OpSetSize, OpSetTimes:"
	keys    = "	case OpPut, OpDelete, OpAppend, OpIncrement:"
)

// mutants lists each check with what the program is without it.
var mutants = slices.Concat(verbs(), fileRules, abi, transactions, images, additions, commits)

// verbs lets each operation through the law in turn.
func verbs() []mutant {
	var ms []mutant
	allow := func(line, op, without string) {
		ms = append(ms, mutant{
			name: "law/" + op, file: law, pkg: "./capabilities", run: ".",
			old: line, new: fmt.Sprintf("	case %s:\n		return Verdict{Decision: Allow}\n%s", op, without),
		})
	}
	for _, l := range []struct {
		line string
		ops  []string
	}{
		{changes, []string{"OpWrite", "OpTruncate", "OpCreate", "OpMkdir", "OpRmdir", "OpUnlink", "OpRename", "OpSetSize", "OpSetTimes"}},
		{keys, []string{"OpPut", "OpDelete", "OpAppend", "OpIncrement"}},
	} {
		for i, op := range l.ops {
			rest := append(append([]string{}, l.ops[:i]...), l.ops[i+1:]...)
			without := "	case " + rest[0]
			for _, r := range rest[1:] {
				without += ", " + r
			}
			allow(l.line, op, without+":")
		}
	}
	single := func(name, old, new string) {
		ms = append(ms, mutant{name: "law/" + name, file: law, old: old, new: new, pkg: "./capabilities", run: "."})
	}
	single("OpRead", "return g.decideRead(a)", "return Verdict{Decision: Allow}")
	single("OpSend", "return g.decideSend(a.Object)", "return Verdict{Decision: Allow}")
	single("OpSocket", "return g.decideSocket()", "return Verdict{Decision: Allow}")
	single("OpHTTP", "return g.decideHTTP()", "return Verdict{Decision: Allow}")
	single("OpSQL", "return denied(CapSQL, EACCES)", "return Verdict{Decision: Allow}")
	single("link", "return denied(CapLink, EPERM)", "return Verdict{Decision: Allow}")
	single("escape", "	case a.Escape:\n		return denied(CapVolume, EACCES)", "	case a.Escape:\n		return Verdict{Decision: Allow}")
	single("read access only", "return denied(CapVolumeWrite, EROFS)\n	case NoAccess:", "return Verdict{Decision: Allow}\n	case NoAccess:")
	single("not granted is no violation", "if access == NoAccess {\n		return denied(CapVolume, EACCES)\n	}", "")
	single("tentative", "if a.Tentative && a.Operation == OpWrite || g.optional", "if g.optional")
	ms = append(ms,
		mutant{
			name: "law/read-only holds no volume for writing", file: "capabilities/grant.go", pkg: "./capabilities", run: ".",
			old: "g.Volumes[i].Access = min(g.Volumes[i].Access, ReadAccess)", new: "_ = i",
		},
		mutant{
			name: "ledger/violation recorded", file: "capabilities/ledger.go", pkg: "./capabilities", run: ".",
			old: "l.violations = append(l.violations, v)", new: "_ = v",
		},
		mutant{
			name: "ledger/denial recorded", file: "capabilities/ledger.go", pkg: "./capabilities", run: ".",
			old: "l.denials = append(l.denials, d)", new: "_ = d",
		},
	)
	return ms
}

func rule(name, file, old, new string) mutant {
	return mutant{name: "files/" + name, file: filesGo + file, old: old, new: new, pkg: "./capabilities/files", run: "."}
}

// fileRules are the places where the file capability has a change judged.
var fileRules = []mutant{
	rule("open creates", "open.go", "if err := h.volume.attempt(capabilities.OpCreate, object); err != nil {\n		return nil, err\n	}", ""),
	rule("open judges", "open.go", "if err := h.volume.judge(a); err != nil {\n			return nil, err\n		}", ""),
	rule("open truncates", "intent.go", "return capabilities.Attempt{Operation: capabilities.OpTruncate}, true", "return capabilities.Attempt{}, false"),
	rule("open writes", "intent.go", "return capabilities.Attempt{Operation: capabilities.OpWrite, Tentative: i.Read}, true", "return capabilities.Attempt{}, false"),
	rule("write-only is no try", "intent.go", "Tentative: i.Read", "Tentative: true"),
	rule("mkdir", "names.go", "return h.apply(capabilities.OpMkdir, p, h.volume.tree.Mkdir)", "return h.volume.tree.Mkdir(p)"),
	rule("rmdir", "names.go", "return h.apply(capabilities.OpRmdir, p, h.volume.tree.Remove)", "return h.volume.tree.Remove(p)"),
	rule("unlink", "names.go", "return h.apply(capabilities.OpUnlink, p, h.volume.tree.Remove)", "return h.volume.tree.Remove(p)"),
	rule("rename", "rename.go", "return h.apply(capabilities.OpRename, p, func(p volume.Place) error {\n		return h.volume.tree.Rename(p, q)\n	})", "return h.volume.tree.Rename(p, q)"),
	rule("write", "content.go", "if err := h.change(capabilities.OpWrite, len(p) == 0); err != nil || len(p) == 0 {", "if len(p) == 0 {\n		var err error"),
	rule("set_size", "content.go", "if err := h.change(capabilities.OpSetSize, false); err != nil {\n		return err\n	}\n	if err := h.volume.tree.Truncate(h.node, size)", "if err := h.volume.tree.Truncate(h.node, size)"),
	rule("allocate", "content.go", "if err := h.change(capabilities.OpSetSize, false); err != nil {\n		return err\n	}\n	i, err := h.Stat()", "i, err := h.Stat()"),
	rule("descriptor of a read-only tool", "content.go", "if h.volume.claimed && !empty {", "if false {"),
	rule("descriptor opened for reading", "content.go", "if !h.write {", "if false {"),
	rule("set_times", "stat.go", "if err := h.volume.attempt(capabilities.OpSetTimes, object); err != nil {\n		return err\n	}", ""),
	rule("link", "link.go", "return h.volume.ledger.Attempt(capabilities.Attempt{\n		Operation: capabilities.OpCreate, Object: h.asked(path), Volume: h.volume.name, Link: true,\n	})", "return nil"),
	rule("escape denied", "volume.go", "return v.ledger.Attempt(capabilities.Attempt{Operation: op, Object: object, Volume: v.name, Escape: true})", "return capabilities.EACCES"),
	rule("target outside not shown", "link.go", "if h.leaves(p, target) {", "if false {"),
	rule("sealed or not granted", "handle.go", "case h.volume.barred():\n		return volume.Place{}, h.volume.refuse(op, h.asked(name))", "case h.volume.Sealed() && false:"),
	rule("descriptor of a volume not granted", "handle.go", "case h.volume.barred():\n		return h.volume.refuse(op, h.object())", ""),
	rule("descriptor closed", "handle.go", "	case h.closed:\n		return capabilities.EBADF\n	case h.volume.barred():\n		return h.volume.refuse(op, h.object())", "	case h.volume.barred():\n		return h.volume.refuse(op, h.object())"),
	rule("rename from a volume not granted", "rename.go", "case h.volume.barred():\n		return h.volume.refuse(capabilities.OpRename, h.asked(path))", "case false:"),
	rule("rename to a volume not granted", "rename.go", "case to.volume.barred():\n		return to.volume.refuse(capabilities.OpRename, to.asked(newPath))", "case false:"),
	rule("scratch is no environment", "volume.go", "	if v.scratch {\n		return nil\n	}\n", ""),
	rule("law asked for reads", "volume.go", "visible: look.Decision == capabilities.Allow,", "visible: look.Decision != 9,"),
	rule("law asked on a volume not granted", "volume.go", "if err := v.attempt(op, object); err != nil {\n		return err\n	}\n	return capabilities.EACCES", "return capabilities.EACCES"),
	{name: "volume/.. above the root", file: "capabilities/volume/walk.go", old: "case p.Name == \"..\" && p.Parent == &o.root:\n		return ErrEscape", new: "case p.Name == \"..\" && p.Parent == &o.root:\n		p.Node = &o.root", pkg: "./capabilities/volume", run: "."},
	{name: "volume/absolute path", file: "capabilities/volume/walk.go", old: "if path[0] == '/' {\n		return Place{}, ErrEscape", new: "if path = strings.TrimLeft(path, \"/\"); path == \"\" {\n		return Place{}, ErrEscape", pkg: "./capabilities/volume", run: "."},
	{name: "volume/absolute link", file: "capabilities/volume/walk.go", old: "case target[0] == '/':\n		return \"\", ErrEscape", new: "case target[0] == '/':\n		return strings.TrimLeft(target, \"/\"), nil", pkg: "./capabilities/volume", run: "."},
}

func function(name, file, old, new string) mutant {
	return mutant{name: "wasi/" + name, file: wasiGo + file, old: old, new: new, pkg: "./runtime/wasi", run: "."}
}

// abi are the functions of WASI that can write, each not doing as it was told
// by the capability.
var abi = []mutant{
	function("path_open CREAT", "path.go", "Create:    oflags&openCreate != 0,", "Create:    false,"),
	function("path_open TRUNC", "path.go", "Truncate:  oflags&openTruncate != 0,", "Truncate:  false,"),
	function("path_open FD_WRITE", "path.go", "Write:     base&(rightWrite|rightAllocate) != 0,", "Write:     base&rightAllocate != 0,"),
	function("path_open FD_ALLOCATE", "path.go", "Write:     base&(rightWrite|rightAllocate) != 0,", "Write:     base&rightWrite != 0,"),
	function("path_open result", "path.go", "h, err := d.file.Open(path, in)\n	if err != nil {\n		return p.result(err)", "h, err := d.file.Open(path, in)\n	if err != nil {\n		return eACCES"),
	function("path_create_directory", "path.go", "return p.named(m, a, rightCreateDirectory, (*files.Handle).Mkdir)", "return success"),
	function("path_remove_directory", "path.go", "return p.named(m, a, rightRemoveDirectory, (*files.Handle).Rmdir)", "return success"),
	function("path_unlink_file", "path.go", "return p.named(m, a, rightUnlinkFile, (*files.Handle).Unlink)", "return success"),
	function("path_rename", "path.go", "return p.pair(m, a[0:3], a[3:6], rightRenameSource, rightRenameTarget, (*files.Handle).Rename)", "return success"),
	function("path_link", "path.go", "return p.pair(m, []uint64{a[0], a[2], a[3]}, a[4:7], rightLinkSource, rightLinkTarget, (*files.Handle).Link)", "return success"),
	function("path_symlink", "path.go", "return p.result(h.Symlink(target, path))", "_, _, _ = h, target, path\n	return success"),
	function("path_filestat_set_times", "filestat.go", "return p.result(h.SetTimesPath(path, follow, t))", "_, _, _, _ = h, path, follow, t\n	return success"),
	function("fd_filestat_set_times", "filestat.go", "return p.result(h.SetTimes(t))", "_, _ = h, t\n	return success"),
	function("fd_filestat_set_size", "filestat.go", "return p.result(h.SetSize(int64(a[1])))", "_ = h\n	return success"),
	function("fd_allocate", "fd.go", "return p.result(h.Allocate(int64(a[1]), int64(a[2])))", "_ = h\n	return success"),
	function("fd_write", "io.go", "return writeAt(d, b, d.offset, done)", "return len(b), nil"),
	function("fd_write APPEND", "io.go", "n, end, err := d.file.Append(b)", "n, end, err := len(b), int64(0), error(nil)"),
	function("fd_pwrite", "io.go", "return writeAt(d, b, int64(a[3]), done)", "return len(b), nil"),
	function("sock_*", "proc.go", "err := p.ledger.Attempt(capabilities.Attempt{Operation: capabilities.OpSocket, Object: \"socket\"})", "_, err := capabilities.OpSocket, error(nil)"),
	function("violation stops", "stop.go", "if _, ok := errors.AsType[*capabilities.Violation](err); ok {\n		return true\n	}", ""),
	function("deadline", "stop.go", "	p.check(ctx)\n}", "}"),
	function("deadline, checkpoint", "processor.go", "	p.Enter(ctx)\n", ""),
	function("deadline, random_get", "proc.go", "		p.check(ctx)\n", ""),
	function("deadline, reads", "io.go", "p.check(ctx)\n		if off > math", "if off > math"),
	function("deadline, writes", "io.go", "p.check(ctx)\n		k, err := put(b, n)", "k, err := put(b, n)"),
	function("deadline, pieces", "memory.go", "for ; len(b) > maxPiece; b = b[maxPiece:] {", "for ; len(b) > 1<<40; b = b[maxPiece:] {"),
	function("deadline, fd_readdir", "readdir.go", "			p.check(ctx)\n", ""),
	function("deadline, standard input", "stdin.go", "case <-ctx.Done():\n		p.check(ctx)", "case <-context.Background().Done():\n		p.check(ctx)"),
	function("listings are bounded", "readdir.go", "len(p.listings) > maxListings || total > maxListed", "total > 1<<30"),
	function("stopped stays stopped", "stop.go", "if p.stop != nil {\n		panic(p.stop)\n	}", ""),
}

func step(name, file, old, new string) mutant {
	return mutant{name: "engine/" + name, file: engine + file, old: old, new: new, pkg: "./runtime", run: "Test[^T]"}
}

// rewriting are the checks of what every module is made into.
func rewriting(name, file, old, new string) mutant {
	return mutant{name: "rewriting/" + name, file: "internal/wasmbin/" + file, old: old, new: new, pkg: "./internal/wasmbin", run: "Rewrite|Plan"}
}

// only has some of the package's tests notice a mutant: it takes them all minutes.
func only(run string, m mutant) mutant {
	m.run = run
	return m
}

// transactions are the engine's own checks.
var transactions = []mutant{
	step("violation decides the outcome", "execution.go", "case len(x.ledger.Violations()) > 0 || errors.Is(err, capabilities.ErrViolation):", "case errors.Is(err, capabilities.ErrViolation) && false:"),
	step("only a good end commits", "call.go", "case r.Outcome == OK, r.Outcome == ToolError && c.commitsErrors(r):", "case true:"),
	only("Mixture", step("a mixture is no violation", "judgement.go", "if err := j.call.tx.Current(ctx, j.prepared); err != nil {", "if err := error(nil); err != nil {")),
	only("Mixture", step("an error of a mixture is none", "call.go", "return err == nil && isConflict(c.tx.Current(ctx, prepared))", "return err == nil && isConflict(c.tx.Current(ctx, prepared)) && false")),
	only("KeysBeforeRequest", step("keys are sealed", "factory.go", "keys: kv.Sealed()", "keys: (*kv.Keys)(nil)")),
	only("KeysBeforeRequest", step("messages are sealed", "factory.go", "box: outbox.Sealed()", "box: (*outbox.Box)(nil)")),
	step("dry run", "settle.go", "if c.dryRun {", "if false {"),
	step("start-up code is sealed", "process.go", "mounts = append(mounts, files.Sealed(r.Name, r.Path))", "mounts = append(mounts, files.Scratch(r.Path, volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 10}}), l))"),
	step("start-up code has no authority", "start.go", "capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{})", "capabilities.NewLedger(capabilities.Grant{Claim: capabilities.Claim{}.Effective()}, capabilities.Notify{})"),
	step("start-up code is in the call's record", "guest.go", "c.startUp.stderr, c.startUp.ledger, c.startUp.seat = &c.stderr, c.execution.ledger, c.seat", "c.startUp.stderr, c.startUp.ledger, c.startUp.seat = &c.stderr, capabilities.NewLedger(capabilities.Grant{Claim: c.execution.ledger.Grant().Claim}, capabilities.Notify{}), c.seat"),
	step("memory limit", "image/memory.go", "case size > m.limit:\n		m.refused = true", "case size > m.declared:\n		m.refused = true"),
	step("globals are put back", "state.go", "	i.setGlobals(s)\n	return nil\n}\n\nfunc", "	return nil\n}\n\nfunc"),
	step("memory is put back", "state.go", "if _, err := i.memory.Reset(); err != nil {", "if err := error(nil); err != nil {"),
	step("what overflowed its stack is discarded", "instance.go", "stackOverflow(err) ||", ""),
	step("what is closed is discarded", "state.go", "if i.module.IsClosed() {", "if false {"),
	step("shared chance is no image", "factory.go", "	if shared {", "	if false {"),
	step("each call has its seed", "guest.go", "if i.exports.reseed != nil {", "if false {"),
	step("second runs have another image", "pool.go", "if s.replay {", "if false {"),
	step("waiting instances are bounded", "warm.go", "w.held > w.most", "false"),
	step("sleeps count", "clock.go", "if c.slept > 0 && c.slept+time.Since(c.start) > c.limit {", "if false {"),
	only("Fuel", step("fuel limit", "hostengine/meter.go", "if m.spent > m.limit {", "if false {")),
	only("TestShortCalls", step("processors are handed on", "processors.go", "if s == nil || !s.on || s.cpus.waiting.Load() == 0 {", "if true {")),
	only("Processor", step("who goes away waits no more", "processors.go", "p.queue.Remove(place)\n		p.waiting.Add(-1)", "_ = place")),
	rewriting("indices are the module's", "plan.go", "if uint64(i) >= n {", "if false {"),
	rewriting("indices of constants are the module's", "shift.go", "w.p.index(at, \"global\", w.p.globals)", "at.u32()"),
	rewriting("types of blocks are the module's", "plan.go", "i >= int64(len(p.w.p.types))", "false"),
	rewriting("labels are the module's", "plan.go", "if uint64(label) >= uint64(len(p.blocks)) {", "if false {"),
	rewriting("engine's imports", "rewrite.go", "if i.Module == EngineModule {", "if false {"),
	rewriting("loops pay", "tight.go", "b = w.check(b)", "b = append(b, opDrop, opDrop)"),
	rewriting("long code pays", "paths.go", "s.now+weight > stretch", "s.now+weight > 1<<40"),
	rewriting("frames that come back pay", "paths.go", "p.top().after = 1", "p.top().after = 0"),
	rewriting("bulk instructions pay", "plan.go", "if amountShift(sub) >= 0 {\n			p.moves", "if false {\n			p.moves"),
	step("output limit", "buffer.go", "if len(p) > c.limit-len(c.b) {", "if false {"),
	step("imports from elsewhere", "link.go", "case !known:", "case !known:\n		return nil\n	case false:"),
	step("signatures of imports", "link.go", "case !sameTypes(i.Type.Params, params) || !sameTypes(i.Type.Results, results):", "case len(params) < len(results) && !sameTypes(i.Type.Results, results):"),
	step("folders of the host", "volumes.go", "if overlap(dir, own) {", "if false {"),
	step("listed is enforced", "package.go", "return e.Listed(judges)", "return e"),
	step("arguments keep to the schema", "call.go", "arguments, err := t.Schemas.Arguments(bytes.TrimSpace(r.Arguments))", "arguments, err := r.Arguments, error(nil)"),
	step("results keep to the schema", "settle.go", "structured, err := c.tool.Schemas.Output(r.Output.StructuredContent)", "structured, err := r.Output.StructuredContent, error(nil)"),
	step("what is not on record is not committed", "settle.go", "if c.report.fault != nil {", "if false {"),
	step("principals are names", "call.go", "case !tool.ValidPackageName(r.Principal):", "case false:"),
	step("volumes are the principal's", "volumes.go", "stored.SpaceOf(principal, vs.pkg, v.request.Name)", "stored.SpaceOf(LocalPrincipal, vs.pkg, v.request.Name)"),
	step("shared volumes are the principal's", "volumes.go", "stored.SpaceOf(principal, sharedPackage, v.shared)", "stored.SpaceOf(LocalPrincipal, sharedPackage, v.shared)"),
	step("folder at its path", "volumes.go", "return d != nil && !d.current()", "return false"),
	step("folder at its path that others hold", "folders.go", "d.current() {", "true {"),
	step("environment is requested", "binding.go", "case !slices.Contains(requested, name):", "case false:"),
	step("running calls are bounded", "admission.go", "return g.running < g.limits.Calls &&", "return"),
	step("their memory is bounded", "admission.go", "&& memory <= g.limits.Memory-g.memory", ""),
	step("waiting calls are bounded", "admission.go", "len(g.queue) > g.limits.Waiting ||", ""),
	step("nobody is overtaken", "admission.go", "case !g.fits(t.memory):\n			return", "case !g.fits(t.memory):\n			i++"),
	step("nobody overtakes his own", "admission.go", "passed[t.principal] || g.atShare(t)", "g.atShare(t)"),
	step("a principal at its share blocks no other", "admission.go", "passed[t.principal] = true\n			i++", "return"),
	step("running calls of a principal are bounded", "admission.go", "s.running >= half(g.limits.Calls) ||", ""),
	step("their memory is bounded by principal", "admission.go", "|| t.memory > g.limits.Memory/2-s.memory", ""),
	step("waiting calls of a principal are bounded", "admission.go", "|| limited(principal) && g.shares[principal].waiting > half(g.limits.Waiting)", ""),
	step("a large call runs alone", "admission.go", "!limited(t.principal) || s.running == 0", "!limited(t.principal)"),
	step("the local principal has all", "admission.go", "return principal != LocalPrincipal", "return principal != \"\""),
	step("who gave up leaves", "admission.go", "	g.queue = slices.Delete(g.queue, i, i+1)\n	s := g.shares[t.principal]\n	s.waiting--", "	_ = i\n	s := g.shares[t.principal]\n	s.waiting--"),
	step("a package waits for itself first", "admission.go", "own, err := p.gate.enter(ctx, principal, memory)", "own, err := (&gate{limits: CallLimits{Calls: 1, Memory: memory}, shares: map[string]share{}}).enter(ctx, principal, memory)"),
	step("drained calls are refused", "running.go", "if r.open.Err() != nil {\n		return r.reason", "if false {\n		return r.reason"),
	step("reserved _meta", "meta.go", "if prefix+\"/\" == MetaPrefix {", "if false {"),
	step("_meta keys are ASCII", "meta.go", "if parts == nil || key == \"\" {", "if parts = append(parts, key, key); false {"),
	step("_meta keys are counted", "meta.go", "if n > maxMetaKeys {", "if false {"),
	step("values are counted", "output.go", "if values > maxValues {", "if false {"),
	step("results are measured as they are sent", "output.go", "fits = charge(&left, sentSize(block))", "_ = left"),
	step("reading is within the deadline", "scan.go", "if s.ctx.Err() != nil {", "if false {"),
	step("output counts as memory", "admission.go", "return l.Memory + outputCost*l.Output", "return l.Memory"),
	step("ends are on record before it is closed", "call.go", "	if closed == nil {\n		defer p.end(running)\n	}", "	if closed == nil {\n		p.end(running)\n	}"),
	step("what is given up is on record", "live.go", "			w.gaveUp()", "			_ = w"),
	{name: "volume/guards hold", file: "capabilities/volume/check.go", old: "if !st.Same(g.Stamp) {", new: "if false {", pkg: "./capabilities/volume", run: "."},
	{name: "volume/listings hold", file: "capabilities/volume/check.go", old: "case ListingDigest(l.Path, list) != l.Digest:", new: "case list == nil && l.Digest == \"\":", pkg: "./capabilities/volume", run: "."},
}
