// Command mixed is sandboxd's server over HTTP with the tool echo in the sandbox
// and as a Go function of the server's own: what differs is the sandbox alone.
// Each package is at a path of its own, /native and those of the arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// gogc is that of sandboxd's daemon.
const gogc = 400

func main() {
	cache := flag.String("cache", "", "folder of compiled modules")
	folder := flag.String("folder", "", "folder of the host for all volumes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *cache, *folder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends. packages are names with folders: c=/path/to/package.
func serve(ctx context.Context, cache, folder string, packages []string) (err error) {
	debug.SetGCPercent(gogc)
	e, err := runtime.New(ctx, runtime.Options{Cache: cache})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	mux := http.NewServeMux()
	if err := mount(mux, "native", newNative()); err != nil {
		return err
	}
	for _, p := range packages {
		name, dir, _ := strings.Cut(p, "=")
		source, err := tool.Load(dir, nil)
		if err != nil {
			return err
		}
		folders := map[string]string{}
		for _, v := range source.Manifest.Requests.Volumes {
			folders[v.Name] = folder
		}
		loaded, err := e.Load(ctx, source, runtime.Binding{Folders: folders})
		if err != nil {
			return err
		}
		if err := mount(mux, name, loaded); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Fprintf(os.Stderr, "listening: MCP at http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func mount(mux *http.ServeMux, name string, p mcpserver.Package) error {
	s, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{p}, Version: "peers"})
	if err != nil {
		return err
	}
	mux.Handle("/"+name, s.Handler(mcpserver.HTTPOptions{Authenticate: mcpserver.Everybody}))
	return nil
}
