package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/bench/peers/report"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/image"
)

// The memory that is put back: that of a small guest.
const (
	wasmPage    = 1 << 16
	systemPage  = 4096
	imagedPages = 66 // of WebAssembly
)

// resets measures putting a memory back after so many of its pages were written
// to: the table is of the method that the engine takes here.
func (l *lab) resets(ctx context.Context) (t *report.Table, c *report.Curve, err error) {
	grown := &curve{Curve: report.Curve{
		ID: "reset", Title: "Putting a memory of 4.1 MiB back", X: "pages of 4 KiB that were written to", Y: "p50 µs", Log: true,
	}}
	fastest := &rows{}
	counts := []int{0, 1, 2, 4, 8, 32, 128, 512, 1000}
	for _, pages := range counts {
		r := &rows{}
		for _, m := range image.Methods() {
			s, err := l.resetSubject(ctx, m, pages)
			if err != nil {
				return nil, nil, err
			}
			if m == image.Methods()[0] {
				if err := fastest.add(report.ResetRow(pages), s, nil); err != nil {
					return nil, nil, err
				}
			}
			if err := r.add(string(m), s, nil); err != nil {
				return nil, nil, err
			}
		}
		if l.short && pages > 2 {
			continue
		}
		l.say("reset: %d pages", pages)
		if err := grown.add(ctx, float64(pages), r, l.few(1), p50); err != nil {
			return nil, nil, err
		}
	}
	if t, err = fastest.table(ctx, l.options(1)); err != nil {
		return nil, nil, err
	}
	t.ID, t.Title = report.ResetTable, "Putting a memory back"
	t.Conditions = fmt.Sprintf("A memory of 4.1 MiB, method %q. CPU has the writing of the pages in it, too; the times have not.", image.Methods()[0])
	return t, &grown.Curve, nil
}

// resetSubject returns the subject of writing to pages and putting them back.
func (l *lab) resetSubject(ctx context.Context, method image.Method, pages int) (s measure.Subject, err error) {
	content := make([]byte, imagedPages*wasmPage)
	for i := range content {
		content[i] = byte(i)
	}
	saved, err := image.New(content)
	if err != nil {
		return s, err
	}
	l.onClose(saved.Close)
	memory, err := image.NewMemory(image.Options{Limit: 2 * uint64(len(content)), Min: wasmPage, Image: saved, Method: method})
	if err != nil {
		return s, err
	}
	r := wazero.NewRuntime(ctx)
	l.onClose(func() error { return errors.Join(r.Close(context.WithoutCancel(ctx)), memory.Release()) })
	module := wasmtest.Module{Memory: [2]uint32{1, 1 << 16}}.Encode()
	guest, err := r.InstantiateWithConfig(experimental.WithMemoryAllocator(ctx, memory), module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return s, err
	}
	view := guest.Memory()
	if err := memory.Adopt(view); err != nil {
		return s, err
	}
	var took time.Duration
	return measure.Subject{
		CPU:  measure.Self,
		Took: func(int) time.Duration { return took },
		Call: func(context.Context, int, int) error {
			for i := range pages {
				if !view.WriteByte(uint32(i*systemPage), 0xff) {
					return fmt.Errorf("page %d is not in memory", i)
				}
			}
			began := time.Now()
			put, err := memory.Reset()
			took = time.Since(began)
			if err == nil && (method == image.MethodScan || method == image.MethodPagemap) && put != pages {
				err = fmt.Errorf("%d pages were put back, of %d", put, pages)
			}
			return err
		},
	}, nil
}
