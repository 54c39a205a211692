package wasi

import (
	"math"
	"math/rand/v2"
	"strings"
)

// The kinds of arguments, by which random ones are made.
const (
	argDescriptor = 'd'
	argPath       = 'p' // pointer and length
	argVectors    = 'v' // pointer and count
	argBuffer     = 'b' // pointer and length
	argResult     = 'r'
	argNumber     = 'n' // an offset, a size, a time or a cookie
	argFlags      = 'f'
	argRights     = 'R'
	argPoll       = 's' // subscriptions, events and their count
)

// shapes has the arguments of each function by kind.
var shapes = map[string]string{
	"args_get": "rr", "args_sizes_get": "rr", "environ_get": "rr", "environ_sizes_get": "rr",
	"clock_res_get": "fr", "clock_time_get": "fnr",
	"fd_advise": "dnnf", "fd_allocate": "dnn", "fd_close": "d", "fd_datasync": "d",
	"fd_fdstat_get": "dr", "fd_fdstat_set_flags": "df", "fd_fdstat_set_rights": "dRR",
	"fd_filestat_get": "dr", "fd_filestat_set_size": "dn", "fd_filestat_set_times": "dnnf",
	"fd_pread": "dvnr", "fd_prestat_get": "dr", "fd_prestat_dir_name": "db", "fd_pwrite": "dvnr",
	"fd_read": "dvr", "fd_readdir": "dbnr", "fd_renumber": "dd", "fd_seek": "dnfr", "fd_sync": "d",
	"fd_tell": "dr", "fd_write": "dvr",
	"path_create_directory": "dp", "path_filestat_get": "dfpr", "path_filestat_set_times": "dfpnnf",
	"path_link": "dfpdp", "path_open": "dfpfRRfr", "path_readlink": "dpbr", "path_remove_directory": "dp",
	"path_rename": "dpdp", "path_symlink": "pdp", "path_unlink_file": "dp",
	"poll_oneoff": "sr", "proc_exit": "n", "proc_raise": "f", "sched_yield": "", "random_get": "b",
	"sock_accept": "dfr", "sock_recv": "dvfrr", "sock_send": "dvfr", "sock_shutdown": "df",
}

// hostilePaths are put into the guest's memory one after the other.
var hostilePaths = []string{
	"file", "dir", "dir/inner", "dir/sub", "hollow", "link", "dirlink", "dirlink/inner", "new", "dir/new", "new/below",
	".", "..", "../secret", "../volume/file", "dir/../file", "dir/../../secret", "out", "outdir", "outdir/secret",
	"outdir/volume/file", "dir/up", "absolute", "/", "/data/file", "/etc/passwd", "/proc/self/mem", "loop", "dangling",
	"", "a\x00b", "\xff\xfe", "file/", "file/x", "dir/", "new/", "hollow/.", "hollow/..", "//", "./file",
	".sandboxd-stage", ".SANDBOXD-x/y", "NUL", "C:\\x", "file:stream", strings.Repeat("n", 255), strings.Repeat("n", 256),
	strings.Repeat("d/", 1500) + "x", strings.Repeat("../", 20) + "etc/passwd",
}

// The layout of the guest's memory at the start of a sequence.
const (
	randomPaths   = 0x1000 // the paths, each in its slot
	pathSlot      = 0x100  // most fit; the long ones lie behind
	randomLong    = 0x8000 // the paths that do not fit
	randomVectors = 0xa000
	randomSubs    = 0xb000
	randomBuffer  = 0xc000
)

// pathAt returns where a path is.
func pathAt(i int) uint64 {
	at := uint64(randomLong)
	for j, p := range hostilePaths {
		switch {
		case len(p) < pathSlot && j == i:
			return randomPaths + uint64(i)*pathSlot
		case j == i:
			return at
		case len(p) >= pathSlot:
			at += uint64(len(p))
		}
	}
	return 0
}

// randomMemory returns a memory that has the paths, lists of buffers and
// subscriptions, and something to write.
func randomMemory() []byte {
	m := make([]byte, 0x10000)
	for i, p := range hostilePaths {
		copy(m[pathAt(i):], p)
	}
	vectors := []uint32{
		randomBuffer, 16, randomBuffer, 0, randomBuffer + 16, 700, 0, 1, 0xfff0, 0x10, 0xfff0, 0x11, math.MaxUint32, 2,
		randomBuffer, math.MaxUint32,
	}
	for i, v := range vectors {
		le.PutUint32(m[randomVectors+4*i:], v)
	}
	at := randomSubs
	for _, s := range [][]byte{
		subscribeFd(eventFdRead, 0), subscribeClock(1, 0, 0), subscribeFd(eventFdWrite, 5), subscribeFd(eventFdRead, 3),
		subscribeClock(0, 1000, 0), subscribeClock(1, math.MaxUint64, 1), subscribeClock(9, 5, 9), subscribeFd(9, 9),
	} {
		at += copy(m[at:], s)
	}
	copy(m[randomBuffer:], strings.Repeat("written by the guest ", 50))
	return m
}

// randomFunction returns a function: one of all, or one of those by which a
// guest gets somewhere.
func randomFunction(r *rand.Rand) string {
	often := []string{
		"path_open", "path_open", "path_open", "path_open", "fd_write", "fd_write", "fd_read", "fd_pwrite", "fd_seek",
		"fd_readdir", "fd_filestat_set_size", "path_create_directory", "path_rename", "path_unlink_file", "path_filestat_get",
	}
	if r.IntN(2) == 0 {
		return often[r.IntN(len(often))]
	}
	name := interfaceSignatures[r.IntN(len(interfaceSignatures))].name
	if name == procExitName && r.IntN(8) > 0 {
		return "sched_yield"
	}
	return name
}

// randomArguments returns arguments for a function: mostly such as do
// something, some as no honest guest passes them.
func randomArguments(r *rand.Rand, name string) []uint64 {
	var args []uint64
	for _, kind := range shapes[name] {
		args = append(args, randomArgument(r, kind)...)
	}
	if r.IntN(12) == 0 && len(args) > 0 {
		args[r.IntN(len(args))] = hostileNumber(r)
	}
	return args
}

func randomArgument(r *rand.Rand, kind rune) []uint64 {
	switch kind {
	case argDescriptor:
		return []uint64{pick(r, 3, 3, 3, 3, 5, 5, 5, 6, 6, 7, 8, 4, 4, 0, 1, 2, 9)}
	case argPath:
		i := r.IntN(len(hostilePaths))
		if r.IntN(2) == 0 {
			i = r.IntN(12)
		}
		return []uint64{pathAt(i), uint64(len(hostilePaths[i]))}
	case argVectors:
		return []uint64{randomVectors + 8*pick(r, 0, 0, 0, 1, 2, 3, 4), pick(r, 1, 1, 1, 0, 2, 3, 4)}
	case argBuffer:
		return []uint64{randomBuffer + r.Uint64N(0x1000), pick(r, 0, 1, 24, 30, 200, 0x1000)}
	case argResult:
		return []uint64{0x100 + 8*r.Uint64N(64)}
	case argNumber:
		return []uint64{pick(r, 0, 0, 1, 2, 5, 10, 100, 4000, 10000, 1<<40, 1<<62, 1<<63, math.MaxUint64, 1_700_000_000_000_000_000)}
	case argFlags:
		return []uint64{pick(r, 0, 0, 0, 1, 1, 2, 4, 8, 9, 5, 13, 16, 31, 32)}
	case argRights:
		return []uint64{uint64(pickRights(r))}
	case argPoll:
		return []uint64{randomSubs + subscriptionSize*r.Uint64N(8), randomBuffer, pick(r, 1, 1, 2, 3, 0, 5000)}
	}
	return nil
}

func pickRights(r *rand.Rand) rights {
	list := []rights{
		rightRead, goReading, rightRead | rightWrite, rightWrite, allRights, 0, rightAllocate, goReading | rightWrite, rights(r.Uint64()),
	}
	return list[r.IntN(len(list))]
}

func hostileNumber(r *rand.Rand) uint64 {
	return pick(r, 0, 0xffff, 0x10000, 0xfffd, math.MaxUint32, math.MaxInt32, 1<<31, math.MaxUint64, 1023, 1024, r.Uint64())
}

func pick(r *rand.Rand, list ...uint64) uint64 { return list[r.IntN(len(list))] }
