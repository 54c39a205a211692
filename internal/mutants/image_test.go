package mutants

// pages are the checks of the memories that are put back.
func pages(name, file, old, new string) mutant {
	return mutant{name: "image/" + name, file: "runtime/image/" + file, old: old, new: new, pkg: "./runtime/image", run: "."}
}

// input are those of what happens around the first read of standard input.
func input(name, file, old, new string) mutant {
	return mutant{name: "input/" + name, file: engine + file, old: old, new: new, pkg: "./runtime", run: "TestInput"}
}

// imaging are the reasons why a module cannot be imaged.
func imaging(name, old, new string) mutant {
	return mutant{name: "imaging/" + name, file: "internal/wasmbin/expose.go", old: old, new: new, pkg: "./internal/wasmbin", run: "Unimageable|Exposed"}
}

// images are the states that instances are put back to.
var images = []mutant{
	pages("grown memory shrinks", "memory.go", "if m.size != m.image.Size() || m.space.moved() {", "if m.space.moved() {"),
	pages("memory that moved is installed", "memory.go", "if m.size != m.image.Size() || m.space.moved() {", "if m.size != m.image.Size() {"),
	pages("a refusal is forgotten", "memory.go", "	m.refused = false\n	return o.changed, m.resize(o)", "	return o.changed, m.resize(o)"),
	pages("as far as the guest got", "memory.go", "m.reach = max(m.reach, size)", "m.reach = size"),
	pages("limit of the module", "memory.go", "case size > m.declared:\n		return nil", "case size > m.declared && size > m.limit:\n		return nil"),
	pages("no use after an error", "memory.go", "case m.failed != nil:\n		return m.failed", "case m.failed != nil && m.released:\n		return m.failed"),
	pages("no use after it was closed", "memory.go", "case m.released || m.freed.Load():", "case m.released:"),
	pages("memories of an image are counted", "image.go", "if !i.closed || i.users > 0 {", "if !i.closed {"),
	pages("a closed image makes no memory", "image.go", "	if i.closed {\n		return ErrClosed\n	}\n", ""),
	pages("what is beyond the image is zero", "mapping_linux.go", "	s.clear(0, s.contents.end)\n	s.clear(s.contents.end, reach)", "	s.clear(0, s.contents.end)"),
	pages("what is beyond the image is zero, new", "mapping_linux.go", "	s.private, s.waste = 0, 0\n	s.clear(s.contents.end, reach)\n	return nil", "	s.private, s.waste = 0, 0\n	return nil"),
	pages("what is beyond the image is zero, compared", "mapping_linux.go", "		s.clear(c.size, reach)", ""),
	pages("what is beyond the image is zero, copied", "mapping_linux.go", "		s.clear(c.end, reach)", ""),
	pages("what cannot be dropped is written", "mapping_linux.go", "s.private += uint64(s.contents.restore(s.area.bytes(0, s.usable), from, to)) * s.contents.page", "_ = s.contents"),
	pages("pages of its own are bounded", "mapping_linux.go", "if s.private > s.keep || s.private > few", "if s.private > few"),
	pages("the list of pages goes on", "mapping_linux.go", "		at = next\n", "		at = reach\n"),
	pages("pages in swap are its own", "finder_linux.go", "if e&(entryPresent|entrySwapped) == 0 ||", "if e&entryPresent == 0 ||"),
	pages("what is beyond the image is zero, heap", "heap.go", "o.changed += c.restore(h.buf, c.size, max(c.size, reach))", "_ = reach"),

	input("what printed", "atinput.go", "	if p.printed {\n		return errPrinted\n	}\n", ""),
	input("descriptors that are open", "wasi/input.go", "case fd >= own && d != nil:", "case false:"),
	input("flags of descriptors", "wasi/input.go", "case d.flags != 0 || d.dropped != 0 || d.uninherit != 0:", "case false:"),
	input("what left the host's way of stopping", "atinput.go", "case isSealed(stop):", "case false:"),
	input("what ended before it read", "atinput.go", "case !read && (err == nil || exited):", "case !read && (err == nil || exited) && false:"),
	input("what a call did before it read", "atinput.go", "		if err := p.untouched(); err != nil {\n			panic(fmt.Errorf(\"%w: before it read its request: %w\", errAnswer, err))\n		}\n", ""),
	input("room for the stack is the host's", "factory.go", "o.Limit += areaPages * pageBytes", "o.Limit += 0"),
	input("stack that does not fit", "atinput.go", "case f.leaves && err != nil:", "case false:"),
	input("globals are put back", "state.go", "	i.setGlobals(s)\n	return nil\n}\n\nfunc", "	return nil\n}\n\nfunc"),
	input("globals of a new instance", "state.go", "		return err\n	}\n	i.setGlobals(s)\n	return nil\n}\n\n// reset", "		return err\n	}\n	return nil\n}\n\n// reset"),
	input("memory of a new instance", "state.go", "if err := i.memory.Adopt(i.module.Memory()); err != nil {", "if err := error(nil); err != nil {"),
	input("arguments of start-up code", "process.go", "o.Args, o.Env, o.Volumes, o.Ledger = p.args, p.env, mounts, l", "o.Args, o.Env, o.Volumes, o.Ledger = nil, p.env, mounts, l"),
	input("files of start-up code", "process.go", "	if p.files != nil {\n		mounts = append(mounts, newFixed(p.files, l))\n	}\n	mounts = append(mounts, files.Sealed(\"\", scratchMount))", "	mounts = append(mounts, files.Sealed(\"\", scratchMount))"),
	input("volumes of start-up code", "process.go", "mounts = append(mounts, files.Sealed(r.Name, r.Path))", "mounts = append(mounts, files.Scratch(r.Path, volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 10}}), l))"),
	input("clock of start-up code", "clock.go", "stands: startUpTime.Add(ahead), limit: limit}", "ahead: ahead, limit: limit}"),
	input("time is the call's", "clock.go", "return time.Now().Add(c.ahead + c.slept)", "return startUpTime.Add(c.ahead + c.slept)"),
	input("second runs have another image", "pool.go", "if s.replay {", "if false {"),
	input("second runs start by another clock", "replay.go", "s.startUp.replay, s.startUp.ahead = true, ahead", "s.startUp.replay, s.startUp.ahead = true, 0"),
	input("start-up code knows no day", "replay.go", "s.startUp.replay, s.startUp.ahead = true, ahead", "s.startUp.replay, s.startUp.ahead = true, ahead+later"),
	input("instances go to their own image", "pool.go", "	p = i.pool\n", ""),
	input("fuel is counted from the start", "package.go", "if p.source.Manifest.Limits.Fuel > 0 {", "if false {"),
	input("it is promised", "start.go", "if err != nil || !p.source.Manifest.Reseeds {", "if err != nil {"),

	only("TestEachCallIsSeeded|TestKinds", step("seed of an image", "factory.go", "	f.reseeds = f.reactor && f.shape.reseeds\n", "	f.reseeds = false\n")),
	only("TestBudget", step("what waits is counted with its engine", "warm.go", "i.memory.Private()+i.stacks+i.kept+instanceBytes, s, false", "i.memory.Private()+i.stacks+i.kept, s, false")),
	only("TestStacks", step("stacks are counted", "warm.go", "i.memory.Private()+i.stacks+i.kept+instanceBytes, s, false", "i.memory.Private()+i.kept+instanceBytes, s, false")),
	only("Stacks", step("large stacks are given back", "stack.go", "if !s.IsValid() || s.Len() > maxStack {", "if !s.IsValid() {")),
	only("TestTrimTakesFat", step("fat is taken", "warm.go", "if i.memory.Trim() != nil {", "if false {")),
	only("TestEngineClosesImages", step("images end with their engine", "pool.go", "shelf(f.pkg, s.image.Close)", "shelf(f.pkg, func() error { return nil })")),
	only("TestStartUpClockStands|TestSleeps", step("sleeps of start-up code", "clock.go", "return c.stands.Add(c.slept)", "return c.stands")),
	only("TestReplaysStartAnew", step("second runs have an instance of their own", "fresh.go", "if n.shelf == nil || s.replay {", "if n.shelf == nil {")),

	imaging("tables that are written", `opTableSet: {0: {"table.set", TableChanged}},`, "0xff: {},"),
	imaging("segments that are dropped", `		9:  {"data.drop", SegmentDropped},`, ""),
	imaging("elements that are dropped", `		13: {"elem.drop", SegmentDropped},`, ""),
	imaging("tables that grow", `		15: {"table.grow", TableChanged},`, ""),
	imaging("types of globals", "case V128, FuncRef, ExternRef:\n			return no", "case ValueType(0):\n			return no"),
	imaging("imported state", "			if im.Mutable {", "			if false {"),
	imaging("several memories", "	case n > 1:\n		return no", "	case n > 9:\n		return no"),
	imaging("number of globals", "if p.mutables > maxExposed {", "if false {"),
}
