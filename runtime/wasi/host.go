package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// ModuleName is the import module of the interface.
const ModuleName = "wasi_snapshot_preview1"

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// call is the body of a host function. Its arguments are on the stack, one a
// slot.
type call func(ctx context.Context, p *Process, m memory, stack []uint64) errno

// function is one function of the interface; all but proc_exit return an
// errno.
type function struct {
	name   string
	params []api.ValueType
	body   call
}

// functions returns the interface in the order of its specification.
func functions() []function {
	return []function{
		{"args_get", []api.ValueType{i32, i32}, argsGet},
		{"args_sizes_get", []api.ValueType{i32, i32}, argsSizesGet},
		{"environ_get", []api.ValueType{i32, i32}, environGet},
		{"environ_sizes_get", []api.ValueType{i32, i32}, environSizesGet},
		{"clock_res_get", []api.ValueType{i32, i32}, clockResGet},
		{"clock_time_get", []api.ValueType{i32, i64, i32}, clockTimeGet},
		{"fd_advise", []api.ValueType{i32, i64, i64, i32}, fdAdvise},
		{"fd_allocate", []api.ValueType{i32, i64, i64}, fdAllocate},
		{"fd_close", []api.ValueType{i32}, fdClose},
		{"fd_datasync", []api.ValueType{i32}, fdDatasync},
		{"fd_fdstat_get", []api.ValueType{i32, i32}, fdFdstatGet},
		{"fd_fdstat_set_flags", []api.ValueType{i32, i32}, fdFdstatSetFlags},
		{"fd_fdstat_set_rights", []api.ValueType{i32, i64, i64}, fdFdstatSetRights},
		{"fd_filestat_get", []api.ValueType{i32, i32}, fdFilestatGet},
		{"fd_filestat_set_size", []api.ValueType{i32, i64}, fdFilestatSetSize},
		{"fd_filestat_set_times", []api.ValueType{i32, i64, i64, i32}, fdFilestatSetTimes},
		{"fd_pread", []api.ValueType{i32, i32, i32, i64, i32}, fdPread},
		{"fd_prestat_get", []api.ValueType{i32, i32}, fdPrestatGet},
		{"fd_prestat_dir_name", []api.ValueType{i32, i32, i32}, fdPrestatDirName},
		{"fd_pwrite", []api.ValueType{i32, i32, i32, i64, i32}, fdPwrite},
		{"fd_read", []api.ValueType{i32, i32, i32, i32}, fdRead},
		{"fd_readdir", []api.ValueType{i32, i32, i32, i64, i32}, fdReaddir},
		{"fd_renumber", []api.ValueType{i32, i32}, fdRenumber},
		{"fd_seek", []api.ValueType{i32, i64, i32, i32}, fdSeek},
		{"fd_sync", []api.ValueType{i32}, fdSync},
		{"fd_tell", []api.ValueType{i32, i32}, fdTell},
		{"fd_write", []api.ValueType{i32, i32, i32, i32}, fdWrite},
		{"path_create_directory", []api.ValueType{i32, i32, i32}, pathCreateDirectory},
		{"path_filestat_get", []api.ValueType{i32, i32, i32, i32, i32}, pathFilestatGet},
		{"path_filestat_set_times", []api.ValueType{i32, i32, i32, i32, i64, i64, i32}, pathFilestatSetTimes},
		{"path_link", []api.ValueType{i32, i32, i32, i32, i32, i32, i32}, pathLink},
		{"path_open", []api.ValueType{i32, i32, i32, i32, i32, i64, i64, i32, i32}, pathOpen},
		{"path_readlink", []api.ValueType{i32, i32, i32, i32, i32, i32}, pathReadlink},
		{"path_remove_directory", []api.ValueType{i32, i32, i32}, pathRemoveDirectory},
		{"path_rename", []api.ValueType{i32, i32, i32, i32, i32, i32}, pathRename},
		{"path_symlink", []api.ValueType{i32, i32, i32, i32, i32}, pathSymlink},
		{"path_unlink_file", []api.ValueType{i32, i32, i32}, pathUnlinkFile},
		{"poll_oneoff", []api.ValueType{i32, i32, i32, i32}, pollOneoff},
		{procExitName, []api.ValueType{i32}, procExit},
		{"proc_raise", []api.ValueType{i32}, procRaise},
		{"sched_yield", nil, schedYield},
		{"random_get", []api.ValueType{i32, i32}, randomGet},
		{"sock_accept", []api.ValueType{i32, i32, i32}, sock},
		{"sock_recv", []api.ValueType{i32, i32, i32, i32, i32, i32}, sock},
		{"sock_send", []api.ValueType{i32, i32, i32, i32, i32}, sock},
		{"sock_shutdown", []api.ValueType{i32, i32}, sock},
	}
}

// Instantiate registers the interface in a runtime, once. find returns the
// process of the call that the given instance serves now, nil for none. Closing
// the result takes the interface out again.
func Instantiate(ctx context.Context, r wazero.Runtime, find func(api.Module) *Process) (api.Closer, error) {
	b := r.NewHostModuleBuilder(ModuleName)
	for _, f := range functions() {
		results := []api.ValueType{i32}
		if f.name == procExitName {
			results = nil
		}
		b = b.NewFunctionBuilder().
			WithGoModuleFunction(bind(f.body, find), f.params, results).
			WithName(f.name).
			Export(f.name)
	}
	return b.Instantiate(ctx)
}

// bind makes a host function of a body. A guest that was stopped stays
// stopped: whatever it calls then stops it again. Calls in a row without a loop
// pass none of the guest's own checks of the context, so each call is one.
func bind(body call, find func(api.Module) *Process) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		p := find(mod)
		if p == nil {
			panic(ErrNoProcess)
		}
		p.Enter(ctx)
		stack[0] = uint64(body(ctx, p, p.view(mod), stack))
	}
}
