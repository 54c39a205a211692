package mutants

func additive(name, file, old, new string) mutant {
	return mutant{name: "additive/" + name, file: "capabilities/additive/" + file, old: old, new: new, pkg: "./capabilities/additive", run: "TestContents|TestPaths|TestUnknown|TestVolatile$|TestTransitions|TestAppendOnly|TestSame$|TestSteps"}
}

// additions are the rules by which something was lost, each not asked.
var additions = []mutant{
	additive("removed", "paths.go", "case !there || s.Action == volume.ActRemove:\n		l.Why = whyRemoved", "case !there || s.Action == volume.ActRemove:\n		return nil"),
	additive("another type", "paths.go", "case was.Kind != is.Kind:\n		l.Why = whyType(was.Kind, is.Kind)", "case was.Kind != is.Kind:\n		return nil"),
	additive("another mode", "paths.go", "case was.Mode.Perm() != is.Mode.Perm():\n		l.Why = whyMode(was.Mode, is.Mode)", "case false:"),
	additive("a link's target", "paths.go", "if err != nil || a == b {", "if err != nil || a != b {"),
	additive("a step that is not known", "paths.go", "	default:\n		l.Why = whyStep\n", "	default:\n		return nil\n"),
	additive("JSON stays JSON", "file.go", "	if !is.json {\n		return lost(JSON, whyNotJSON)\n	}", "	if !is.json {\n		return verdict{format: JSON, verb: capabilities.Insert}\n	}"),
	additive("JSON Lines stay JSON Lines", "file.go", "	case !is.lines:\n		return lost(JSONLines, whyNotLines)", "	case !is.lines:\n		return verdict{format: JSONLines, verb: capabilities.Insert}"),
	additive("text stays text", "file.go", "	case !isText(p.new):\n		return lost(Text, whyNotText)", ""),
	additive("byte order mark", "file.go", "	case afterMark(p.old) != afterMark(p.new):\n		return lost(Text, whyMark)", ""),
	additive("scripts only grow", "file.go", "case (p.script || p.hashbang()) && !p.grown():", "case false:"),
	additive("records of scripts only grow", "file.go", "case p.script && !p.grown():", "case false:"),
	additive("what has no rule", "file.go", "case !p.appendOnly:", "case false:"),
	additive("append-only is a prefix", "file.go", "case p.same < p.old.size:\n		return lost(Binary, whyPrefix)", "case false:"),
	additive("every line", "lines.go", "if x.new.ended() || x.m.err != nil {\n				return false", "if x.new.ended() || x.m.err != nil {\n				return true"),
	additive("every element", "match.go", "		if !more {\n			return tries.failed(x)", "		if !more {\n			return true"),
	additive("every key", "object.go", "		case !found:\n			return x.fails(keyRemoved, noValue, noValue)", "		case !found:\n			return true"),
	additive("values", "match.go", "return x.fails(valueChanged, a, b)", "return x.old.skip() && x.new.skip()"),
	additive("types of values", "match.go", "	if a != b {\n		return x.fails(typeChanged, a, b)\n	}\n", "	if a != b {\n		return x.old.skip() && x.new.skip()\n	}\n"),
	additive("a volatile value keeps its type", "except.go", "case e.volatile:\n			return a == b", "case e.volatile:\n			return true"),
	additive("transitions go from one value", "except.go", "hasText(x.old, p, a, e.from) &&", ""),
	additive("the same content", "same.go", "if p.same == p.old.size && p.same == p.new.size {", "if p.same == p.old.size {"),
}

func engineStep(name, file, old, new, run string) mutant {
	return mutant{name: "engine/" + name, file: engine + file, old: old, new: new, pkg: "./runtime", run: run}
}

// commits are what a commit and its undo rest on.
var commits = []mutant{
	{name: "sqlite/guards hold", file: "capabilities/store/sqlite/commit.go", old: "if r.version(b.now) != g.Version {", new: "if r == nil {", pkg: "./capabilities/store/sqlite", run: "TestConformance$"},
	{name: "sqlite/ranges hold", file: "capabilities/store/sqlite/commit.go", old: "if digest != g.Digest {", new: "if digest == \"\" {", pkg: "./capabilities/store/sqlite", run: "TestConformance$"},
	{name: "sqlite/an ID is used once", file: "capabilities/store/sqlite/commit.go", old: "	if b.c.Changes() == 0 {\n		return b.answered(c.ID)\n	}", new: "", pkg: "./capabilities/store/sqlite", run: "TestConformance$"},
	engineStep("an idempotency key is of its arguments", "remember.go", "if was.Digest != m.digest {", "if false {", "TestIdempotencyKey"),
	engineStep("only additions", "judgement.go", "	if loss == nil || !held {\n		return nil\n	}", "	if true {\n		return nil\n	}", "TestKeysByClaim"),
	engineStep("keys are judged with files", "judgement.go", "if lost := j.call.keys.Lost(); len(lost) > 0 {", "if lost := j.call.keys.Lost(); len(lost) > 1<<30 {", "TestKeysByClaim"),
	engineStep("nothing further", "replay.go", "			if !same {", "			if !same && false {", "TestKeysByClaim"),
	engineStep("a second run's violations", "judgement.go", "	case Further:\n		return j.further(ctx, found)", "	case Further:\n		return nil", "TestKeysByClaim"),
	{name: "outbox/keys are of the arguments", file: "capabilities/outbox/sender.go", old: "[]byte(s.Tool), canonical(s.Arguments),", new: "[]byte(s.Tool), canonical(nil),", pkg: "./capabilities/outbox", run: "."},
	{name: "outbox/what is known is not sent again", file: "capabilities/outbox/box.go", old: "if err == nil && !known {", new: "if err == nil && (!known || known) {", pkg: "./capabilities/outbox", run: "."},
	{name: "kv/another value is a loss", file: "capabilities/kv/effects.go", old: "return e.Verb == capabilities.Create || e.Verb == capabilities.Append", new: "return e.Verb != capabilities.Delete", pkg: "./capabilities/kv", run: "."},
	{name: "undo/only what is as the call left it", file: "capabilities/undo/check.go", old: "	if len(r.changed.Changed) > 0 {\n		return &r.changed\n	}", new: "", pkg: "./capabilities/undo", run: "TestChangedSince"},
	{name: "undo/contents are compared", file: "capabilities/undo/check.go", old: "	if err != nil || d == p.Left.Digest {\n		return \"\", err\n	}", new: "	if err != nil || d == d {\n		return \"\", err\n	}", pkg: "./capabilities/undo", run: "TestChangedSince"},
	{name: "undo/a folder of the call holds no other", file: "capabilities/undo/check.go", old: "	if hidden {\n		return OtherNames, nil\n	}", new: "	_ = hidden", pkg: "./capabilities/undo", run: "TestChangedSince|TestHiddenEntry"},
}
