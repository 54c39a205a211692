package wasmbin

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	for _, f := range strings.Fields(os.Getenv("STATS")) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		p, err := parse(b)
		if err != nil {
			fmt.Println(f, err)
			continue
		}
		d1 := time.Since(at)
		at = time.Now()
		var m, sum cost
		var glob uint64 = p.mutables
		k := 0
		for _, s := range p.sections {
			if s.id != sectionCode {
				continue
			}
			r := &reader{b: s.body, base: s.off}
			n := r.count("f", maxFuncs)
			for range n {
				body := r.sub(uint64(r.u32()))
				l := localDecls(body)
				c := p.costOf(body, p.types[p.funcs[len(p.funcs)-n+k]], l, glob)
				if body.err != nil {
					fmt.Println(body.err)
				}
				k++
				acc := func(m, s *uint64, v uint64) { *m = max(*m, v); *s += v }
				acc(&m.size, &sum.size, c.size)
				acc(&m.nodes, &sum.nodes, c.nodes)
				acc(&m.depth, &sum.depth, c.depth)
				acc(&m.loops, &sum.loops, c.loops)
				acc(&m.values, &sum.values, c.values)
				acc(&m.live, &sum.live, c.live)
				acc(&m.phis, &sum.phis, c.phis)
				acc(&m.bounds, &sum.bounds, c.bounds)
				acc(&m.square, &sum.square, c.square)
				acc(&m.bulk, &sum.bulk, c.bulk)
				acc(&m.height, &sum.height, c.height)
				acc(&m.vars, &sum.vars, c.vars)
			}
		}
		fmt.Printf("%s %d B, parse %v cost %v, %d functions %d types %d elements %d names glob %d imports %d exports %d\n  max %+v\n  sum %+v\n", f[max(0, len(f)-30):], len(b), d1, time.Since(at), p.module.Functions, len(p.types), p.elements, 0, glob, len(p.module.Imports), len(p.module.Exports), m, sum)
	}
}
