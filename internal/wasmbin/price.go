package wasmbin

import "fmt"

// Limits of what a module may cost to compile. An engine compiles a function
// in one go that nothing can end, so they are such that what is allowed takes
// about 20 s and 1 GiB, by measurements of wazero 1.12 on a machine with two
// cores. After each stands the largest that was seen in CPython (26 MB),
// QuickJS and programs in Go, Rust, TinyGo and Zig.
const (
	maxDepth        = 8000      // blocks in each other: 550, a switch in Go
	maxLoops        = 64        // loops in each other: 8
	maxNodes        = 40_000    // basic blocks of a function: 5300, CPython
	maxBulk         = 4000      // bulk instructions of a function: 31
	maxOperands     = 100_000   // on the stack: 1800, CPython
	maxValues       = 1_900_000 // parameters and results of calls and branches of a function: 6400
	maxMemory       = 512       // MiB of a function: 72, CPython
	maxModuleMemory = 960       // MiB of a module, its machine code included: 246, CPython
	maxWork         = 20_000    // ms of a module: 8100, CPython; 3700, a program in Go
)

// Prices, in ns and bytes.
const (
	unitWork, unitMemory        = 250, 512 // of a weight of 1
	unitGrowth                  = 600      // each takes 1 ns more for so many of them, as caches and freed memory run out
	unitKept                    = 18       // bytes of machine code, twice
	nodeWeight                  = 6
	findWork                    = 15 // of a basic block on the way to where a variable is set
	edgeWork                    = 5  // the same, for each way into a block
	dominatorWork               = 3  // of a step up the dominator tree
	dominatorGrowth             = 2000
	variableWork, variableBytes = 150, 40
	variableGrowth              = 15_000
	operandWork, operandBytes   = 50, 14
	boundWork, boundBytes       = 90, 28
	valueWork, valueBytes       = 600, 280
	loopBytes                   = 110 // of a variable in a loop

	functionWork = 5000
	globalWork   = 10 // of a global or an import, for each function
	typeWork     = 15 // of a type, for each function
	nodeWork     = 10 // of a node of the largest function, for each function
)

// bill is what one function costs, by reason.
type bill struct {
	work, memory uint64
	most         uint64
	reason       string
}

func (b *bill) add(reason string, n, work, memory uint64) {
	b.work += n * work
	b.memory += n * memory
	// A reason is the one that counts most for what is scarcest.
	share := n*work/maxWork + n*memory/maxMemory
	if share > b.most {
		b.most, b.reason = share, reason
	}
}

// bill adds up what the function costs.
func (c *coster) bill() bill {
	var b bill
	vars := c.vars + 2 + min(c.globalUses+c.calls*c.p.mutables, uint64(c.p.globals+len(c.p.refs))) // two of the memory
	unit := unitWork + (c.weight+c.nodes*nodeWeight)/unitGrowth
	b.add("instructions", c.weight, unit, unitMemory)
	b.add("branches and blocks", c.nodes*nodeWeight, unit, unitMemory)
	b.add("branches and blocks in a row", c.dominators, dominatorWork+c.nodes/dominatorGrowth, 0)
	b.add("uses of variables after many branches", c.finds, findWork, 0)
	b.add("branches times variables", c.edges*vars, edgeWork, 0)
	b.add("branches times variables", c.nodes*vars, variableWork+c.nodes*vars/variableGrowth, variableBytes)
	b.add("branches times operands", c.operands, operandWork, operandBytes)
	b.add("branches times addresses", c.bounds, boundWork, boundBytes)
	b.add("parameters and results", c.values, valueWork, valueBytes)
	b.add("loops times variables", c.loops*vars, 0, loopBytes)
	// Variables that loops and merging branches seem to change are compared
	// with each other as often as loops are nested.
	rounds := c.loopDepth + 2
	b.add("loops times variables", c.merges*vars*vars, rounds, 0)
	b.add("branches times variables", c.phis, rounds, 0)
	return b
}

// costs checks what a function costs, and adds it to the module.
func (p *parser) costs(r, body *reader, number int, t FuncType, locals uint64) {
	if r.err != nil {
		return
	}
	c := newCoster(p, body, t, locals)
	walk(body, c.visit)
	if r.err = body.err; r.err != nil {
		return
	}
	b := c.bill()
	where := func(what string) string {
		return fmt.Sprintf("%s function %d, most of it for %s", what, number, b.reason)
	}
	if b.memory>>20 > maxMemory {
		r.costly(where("MiB of memory to compile"), b.memory>>20, maxMemory)
		return
	}
	p.nodes = max(p.nodes, c.nodes)
	p.memory = max(p.memory, b.memory)
	p.kept += (c.weight + c.nodes*nodeWeight) * unitKept
	r.costly(where("MiB of memory to compile up to"), (p.memory+p.kept)>>20, maxModuleMemory)
	if p.work += b.work; p.work/1e6 > maxWork {
		r.costly(where("ms of work to compile up to"), p.work/1e6, maxWork)
	}
}

// perFunction adds the work that every function takes for what the module
// has: wazero looks at all of it again.
func (p *parser) perFunction() error {
	one := functionWork + globalWork*uint64(p.globals+len(p.refs)+len(p.module.Imports)) + typeWork*uint64(len(p.types)) + nodeWork*p.nodes
	if p.work += uint64(p.codes) * one; p.work/1e6 > maxWork {
		return &LimitError{What: "ms of work to compile all functions", Have: p.work / 1e6, Max: maxWork, Costly: true}
	}
	return nil
}
