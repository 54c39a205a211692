package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/sandboxd/sandboxd/guests/wasi"
)

func read(path string) func(wasi.FD) wasi.Errno {
	return func(dir wasi.FD) wasi.Errno {
		fd, e := wasi.PathOpen(dir, path, wasi.Open{Rights: wasi.RightRead})
		if e == wasi.Success {
			wasi.Close(fd)
		}
		return e
	}
}

func create(path string) func(wasi.FD) wasi.Errno {
	return func(dir wasi.FD) wasi.Errno {
		fd, e := wasi.PathOpen(dir, path, wasi.Open{Flags: wasi.Create, Rights: wasi.RightRead | wasi.RightWrite})
		if e == wasi.Success {
			wasi.Close(fd)
		}
		return e
	}
}

// paths leave by their text alone.
var paths = []attempt{
	{"read_parent", "Opens the folder above the volume.", false, read("..")},
	{"read_above", "Reads a file above the volume.", false, read("../etc/hostname")},
	{"read_detour", "Reads a file above the volume by way of a folder in it.", false, read("docs/../../etc/hostname")},
	{"read_absolute", "Reads a file by an absolute path.", false, read("/etc/hostname")},
	{"stat_above", "Looks a file up above the volume.", false, func(dir wasi.FD) wasi.Errno {
		return wasi.PathStat(dir, "../../etc/hostname")
	}},
	{"read_from_folder", "Reads a file above the volume from a folder in it.", false, func(dir wasi.FD) wasi.Errno {
		docs, e := wasi.PathOpen(dir, "docs", wasi.Open{Flags: wasi.Directory, Rights: wasi.RightRead})
		if e != wasi.Success {
			return e
		}
		defer wasi.Close(docs)
		return read("../../etc/hostname")(docs)
	}},
	{"create_above", "Makes a file above the volume.", true, create("../sandboxd-escaped.txt")},
	{"mkdir_above", "Makes a folder above the volume.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Mkdir(dir, "../sandboxd-escaped")
	}},
	{"unlink_above", "Removes a file above the volume.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Unlink(dir, "../sandboxd-escaped.txt")
	}},
	{"rmdir_above", "Removes a folder above the volume.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Rmdir(dir, "../sandboxd-escaped")
	}},
	{"rename_out", "Moves a file out of the volume.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Rename(dir, "report.txt", dir, "../sandboxd-escaped.txt")
	}},
	{"rename_in", "Moves a file into the volume.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Rename(dir, "../sandboxd-escaped.txt", dir, "report.txt")
	}},
}

// followed leave by links that are in the volume before the call.
var followed = []attempt{
	{"follow_file", "Reads a file through a link to it.", false, read("out-file")},
	{"follow_folder", "Reads a file below a link to its folder.", false, read("out-absolute/hostname")},
	{"follow_relative", "Reads a file below a link to a folder above.", false, read("out-relative/etc/hostname")},
	{"follow_chain", "Reads a file below a link to a link.", false, read("hop/etc/hostname")},
	{"follow_loop", "Reads a link that leads to itself.", false, read("loop")},
	{"show_link", "Shows where a link leads.", false, func(dir wasi.FD) wasi.Errno {
		_, e := wasi.Readlink(dir, "out-absolute")
		return e
	}},
	{"create_dangling", "Makes the file that a link outside leads to.", true, create("dangling")},
	{"create_below_link", "Makes a file below a link to a folder above.", true, create("out-relative/sandboxd-escaped.txt")},
	{"touch_outside", "Sets the times of a file through a link.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.PathSetTimes(dir, "dangling", 0, 0, wasi.ModifiedTimeNow)
	}},
}

// made leave by links of their own.
var made = []attempt{
	{"link_folder", "Makes a link to a folder outside.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Symlink("/etc", dir, "etc")
	}},
	{"link_above", "Makes a link to the folder above.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Symlink("..", dir, "docs/above")
	}},
	{"link_inside", "Makes a link to a file of the volume.", true, func(wasi.FD) wasi.Errno {
		return errnoOf(os.Symlink("report.txt", "/data/newest.txt"))
	}},
	{"link_quietly", "Makes a link from a tool that claims to change nothing.", false, func(dir wasi.FD) wasi.Errno {
		return wasi.Symlink("report.txt", dir, "newest.txt")
	}},
	{"hard_link", "Gives a file a second name.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Link(dir, "report.txt", dir, "second.txt")
	}},
	{"hard_link_above", "Gives a file above the volume a name in it.", true, func(dir wasi.FD) wasi.Errno {
		return wasi.Link(dir, "../../etc/hostname", dir, "hostname")
	}},
	{"hard_link_scratch", "Gives a file of the volume a name in scratch.", true, func(dir wasi.FD) wasi.Errno {
		tmp, err := wasi.Dir("/tmp")
		if err != nil {
			return wasi.ENOENT
		}
		return wasi.Link(dir, "report.txt", tmp, "report.txt")
	}},
}

func errnoOf(err error) wasi.Errno {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return wasi.Errno(e)
	}
	return wasi.Success
}
