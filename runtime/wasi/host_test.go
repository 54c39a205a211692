package wasi

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/internal/wasmtest"
)

// signature is a function of the interface: its parameters, i for i32 and l
// for i64, and whether it returns an errno.
type signature struct {
	name   string
	params string
	errno  bool
}

// interfaceSignatures is the interface as its specification has it
// (wasi_snapshot_preview1.witx, lowered as the core module ABI says).
var interfaceSignatures = []signature{
	{"args_get", "ii", true},
	{"args_sizes_get", "ii", true},
	{"environ_get", "ii", true},
	{"environ_sizes_get", "ii", true},
	{"clock_res_get", "ii", true},
	{"clock_time_get", "ili", true},
	{"fd_advise", "illi", true},
	{"fd_allocate", "ill", true},
	{"fd_close", "i", true},
	{"fd_datasync", "i", true},
	{"fd_fdstat_get", "ii", true},
	{"fd_fdstat_set_flags", "ii", true},
	{"fd_fdstat_set_rights", "ill", true},
	{"fd_filestat_get", "ii", true},
	{"fd_filestat_set_size", "il", true},
	{"fd_filestat_set_times", "illi", true},
	{"fd_pread", "iiili", true},
	{"fd_prestat_get", "ii", true},
	{"fd_prestat_dir_name", "iii", true},
	{"fd_pwrite", "iiili", true},
	{"fd_read", "iiii", true},
	{"fd_readdir", "iiili", true},
	{"fd_renumber", "ii", true},
	{"fd_seek", "ilii", true},
	{"fd_sync", "i", true},
	{"fd_tell", "ii", true},
	{"fd_write", "iiii", true},
	{"path_create_directory", "iii", true},
	{"path_filestat_get", "iiiii", true},
	{"path_filestat_set_times", "iiiilli", true},
	{"path_link", "iiiiiii", true},
	{"path_open", "iiiiillii", true},
	{"path_readlink", "iiiiii", true},
	{"path_remove_directory", "iii", true},
	{"path_rename", "iiiiii", true},
	{"path_symlink", "iiiii", true},
	{"path_unlink_file", "iii", true},
	{"poll_oneoff", "iiii", true},
	{"proc_exit", "i", false},
	{"proc_raise", "i", true},
	{"sched_yield", "", true},
	{"random_get", "ii", true},
	{"sock_accept", "iii", true},
	{"sock_recv", "iiiiii", true},
	{"sock_send", "iiiii", true},
	{"sock_shutdown", "ii", true},
}

func (s signature) types() (params, results []byte) {
	for _, c := range s.params {
		if c == 'l' {
			params = append(params, wasmtest.I64)
		} else {
			params = append(params, wasmtest.I32)
		}
	}
	if s.errno {
		results = []byte{wasmtest.I32}
	}
	return params, results
}

// TestSignatures: what is exported is the interface, function by function.
func TestSignatures(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	if _, err := Instantiate(ctx, r, func(api.Module) *Process { return nil }); err != nil {
		t.Fatal(err)
	}
	exported := r.Module(ModuleName).ExportedFunctionDefinitions()
	if len(exported) != len(interfaceSignatures) || len(interfaceSignatures) != 46 {
		t.Errorf("%d functions exported, %d expected", len(exported), len(interfaceSignatures))
	}
	for _, s := range interfaceSignatures {
		d, ok := exported[s.name]
		if !ok {
			t.Errorf("%s: not exported", s.name)
			continue
		}
		params, results := s.types()
		if !slices.Equal(d.ParamTypes(), params) || !slices.Equal(d.ResultTypes(), results) {
			t.Errorf("%s: %v -> %v, want %v -> %v", s.name, d.ParamTypes(), d.ResultTypes(), params, results)
		}
	}
}

// TestNoProcess: an instance that serves no call can do nothing.
func TestNoProcess(t *testing.T) {
	g := newGuest(t, forwarder(false))
	for name := range g.functions {
		if _, err := g.try(name, make([]uint64, arity(name))...); !errors.Is(err, ErrNoProcess) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoMemory: a module without a memory gets an errno for its pointers.
func TestNoMemory(t *testing.T) {
	g := newGuest(t, forwarder(true))
	g.process = NewProcess(Options{Args: []string{"x"}})
	defer g.process.Close()
	for name := range g.functions {
		if name == procExitName || strings.HasPrefix(name, "sock_") {
			continue
		}
		if _, err := g.try(name, make([]uint64, arity(name))...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.want(eFAULT, "args_get", 0, 0)
	g.want(eFAULT, "random_get", 0, 0)
}

func arity(name string) int {
	i := slices.IndexFunc(interfaceSignatures, func(s signature) bool { return s.name == name })
	return len(interfaceSignatures[i].params)
}
