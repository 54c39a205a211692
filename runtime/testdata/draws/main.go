// Command draws is a reactor whose tools show what one call can see of another
// one's instance. It is built for wasip1 by a test.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	oldrand "math/rand"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// What start-up code leaves.
var (
	born   = time.Now()
	name   = fmt.Sprintf("%016x", rand.Uint64())
	order  = map[int]bool{}
	calls  int
	kept   [][]byte
	rung   bool
	ticked int
)

func init() {
	for i := range 64 {
		order[i] = true
	}
	time.AfterFunc(50*time.Minute, func() { rung = true })
	go func() {
		for {
			time.Sleep(10 * time.Minute)
			ticked++
		}
	}()
	register("draw", draw)
	register("count", func(sdk.Call) (string, error) { calls++; return fmt.Sprint(calls, len(kept)), nil })
	register("age", func(sdk.Call) (string, error) {
		return fmt.Sprint(born.UTC().Format(time.RFC3339), " ", time.Since(born) > 59*time.Minute), nil
	})
	register("timers", timers)
	register("grow", grow)
	register("recurse", func(sdk.Call) (string, error) { calls++; return fmt.Sprint(recurse(1 << 40)), nil })
	register("trap", func(sdk.Call) (string, error) { calls++; panic("trapped") })
	register("leave", func(sdk.Call) (string, error) { calls++; os.Exit(3); return "", nil })
	register("fail", func(sdk.Call) (string, error) { calls++; return "", errors.New("failed") })
	register("spin", func(sdk.Call) (string, error) {
		for {
			calls++
		}
	})
	register("save", func(sdk.Call) (string, error) {
		return "saved", os.WriteFile("/data/"+name, []byte("x"), 0o644)
	}, sdk.Idempotent(true))
	register("save_fresh", func(sdk.Call) (string, error) {
		return "saved", os.WriteFile(fmt.Sprintf("/data/%x", rand.Uint64()), []byte("x"), 0o644)
	}, sdk.Idempotent(true))
	register("save_born", func(sdk.Call) (string, error) {
		return "saved", os.WriteFile("/data/born", []byte(born.Format(time.RFC3339Nano)), 0o644)
	}, sdk.Idempotent(true))
	register("save_same", func(sdk.Call) (string, error) {
		return "saved", os.WriteFile("/data/same", []byte("x"), 0o644)
	}, sdk.Idempotent(true))
}

func register(name string, f func(sdk.Call) (string, error), more ...sdk.Option) {
	options := append([]sdk.Option{sdk.Description(name), sdk.OpenWorld(false)}, more...)
	sdk.Register(sdk.Tool(name, func(c *sdk.Call, _ struct{}) (string, error) { return f(*c) }, options...))
}

// draw says what each source of chance gives, a line each.
func draw(sdk.Call) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%x %x\n", rand.Uint64(), rand.Uint64())
	fmt.Fprintf(&b, "%x %x\n", oldrand.Int63(), oldrand.Int63())
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], maphash.Bytes(maphash.MakeSeed(), []byte("x")))
	fmt.Fprintf(&b, "%x\n", seed)
	for k := range order {
		fmt.Fprint(&b, k, " ")
	}
	b.WriteByte('\n')
	c := make(chan int, 64)
	for range 64 {
		select {
		case c <- 0:
		case c <- 1:
		}
		fmt.Fprint(&b, <-c)
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// timers says which timers of start-up code went off, after a moment of sleep.
func timers(sdk.Call) (string, error) {
	time.Sleep(time.Millisecond)
	return fmt.Sprint(rung, ticked > 0), nil
}

func grow(sdk.Call) (string, error) {
	calls++
	for range 8 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	return "grown", nil
}

func recurse(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + recurse(n-1) + len(name[:n&1])
}

func main() {}
