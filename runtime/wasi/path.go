package wasi

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/files"
)

// The flags of path_open (preview 1, oflags).
const (
	openCreate = 1 << iota
	openDirectory
	openExclusive
	openTruncate
)

// pathOpen opens a file and writes the number of its descriptor, a u32.
//
// What the guest asks for is taken from FD_READ, FD_WRITE, FD_ALLOCATE and the
// flags. The other rights are asked for out of habit: Go requests FD_READ and
// the right to unlink with every file that it opens for reading.
func pathOpen(_ context.Context, p *Process, m memory, a []uint64) errno {
	in, e := intent(low(a[1]), low(a[4]), rights(a[5]), low(a[7]))
	if e != success {
		return e
	}
	d, e := p.get(a[0], openRights(in))
	switch {
	case e != success:
		return e
	case d.file == nil:
		return eNOTDIR
	}
	path, e := m.path(a[2], a[3])
	if e != success {
		return e
	}
	out, ok := m.bytes(low(a[8]), 4)
	if !ok {
		return eFAULT
	}
	if rights(a[5])&(rightRead|rightWrite|rightAllocate)&d.uninherit != 0 {
		return eNOTCAPABLE
	}
	if _, ok := p.table.lowest(); !ok {
		return eMFILE
	}
	h, err := d.file.Open(path, in)
	if err != nil {
		return p.result(err)
	}
	fd, _ := p.table.add(&descriptor{
		file: h, flags: uint16(a[7]), dropped: d.uninherit, uninherit: d.uninherit,
	})
	le.PutUint32(out, uint32(fd))
	return success
}

// openRights returns the rights that a directory must not have given up.
func openRights(in files.Intent) rights {
	need := rightOpen
	if in.Create {
		need |= rightCreateFile
	}
	if in.Truncate {
		need |= rightPathSetSize
	}
	return need
}

// intent returns what an open asks for in fact.
func intent(lookupFlags, oflags uint64, base rights, fdflags uint64) (files.Intent, errno) {
	follow, e := lookup(lookupFlags)
	if e != success {
		return files.Intent{}, e
	}
	if oflags > openCreate|openDirectory|openExclusive|openTruncate || fdflags > allFlags {
		return files.Intent{}, eINVAL
	}
	return files.Intent{
		Read:      base&rightRead != 0,
		Write:     base&(rightWrite|rightAllocate) != 0,
		Create:    oflags&openCreate != 0,
		Exclusive: oflags&openExclusive != 0,
		Truncate:  oflags&openTruncate != 0,
		Directory: oflags&openDirectory != 0,
		Append:    fdflags&flagAppend != 0,
		Follow:    follow,
	}, success
}

func pathCreateDirectory(_ context.Context, p *Process, m memory, a []uint64) errno {
	return p.named(m, a, rightCreateDirectory, (*files.Handle).Mkdir)
}

func pathRemoveDirectory(_ context.Context, p *Process, m memory, a []uint64) errno {
	return p.named(m, a, rightRemoveDirectory, (*files.Handle).Rmdir)
}

func pathUnlinkFile(_ context.Context, p *Process, m memory, a []uint64) errno {
	return p.named(m, a, rightUnlinkFile, (*files.Handle).Unlink)
}

// named does something to the path of a[2] bytes at a[1] below descriptor a[0].
func (p *Process) named(m memory, a []uint64, need rights, do func(*files.Handle, string) error) errno {
	h, e := p.file(a[0], need, eNOTDIR)
	if e != success {
		return e
	}
	path, e := m.path(a[1], a[2])
	if e != success {
		return e
	}
	return p.result(do(h, path))
}

// pathRename moves a[2] bytes at a[1] below a[0] to a[5] bytes at a[4] below
// a[3].
func pathRename(_ context.Context, p *Process, m memory, a []uint64) errno {
	return p.pair(m, a[0:3], a[3:6], rightRenameSource, rightRenameTarget, (*files.Handle).Rename)
}

// pathLink is refused. a[1] has lookupflags, the rest is as in path_rename.
func pathLink(_ context.Context, p *Process, m memory, a []uint64) errno {
	if _, e := lookup(a[1]); e != success {
		return e
	}
	return p.pair(m, []uint64{a[0], a[2], a[3]}, a[4:7], rightLinkSource, rightLinkTarget, (*files.Handle).Link)
}

// pair does something to two paths, each given as descriptor, pointer, length.
func (p *Process) pair(m memory, from, to []uint64, needFrom, needTo rights,
	do func(*files.Handle, string, *files.Handle, string) error,
) errno {
	old, e := p.file(from[0], needFrom, eNOTDIR)
	if e != success {
		return e
	}
	path, e := m.path(from[1], from[2])
	if e != success {
		return e
	}
	dir, e := p.file(to[0], needTo, eNOTDIR)
	if e != success {
		return e
	}
	newPath, e := m.path(to[1], to[2])
	if e != success {
		return e
	}
	return p.result(do(old, path, dir, newPath))
}

// pathSymlink is refused: a[1] bytes at a[0] would be the target of a link at
// a[4] bytes at a[3] below a[2].
func pathSymlink(_ context.Context, p *Process, m memory, a []uint64) errno {
	target, e := m.path(a[0], a[1])
	if e != success {
		return e
	}
	h, e := p.file(a[2], rightSymlink, eNOTDIR)
	if e != success {
		return e
	}
	path, e := m.path(a[3], a[4])
	if e != success {
		return e
	}
	return p.result(h.Symlink(target, path))
}

// pathReadlink writes a link's target, cut off at the end of the buffer, and
// how many bytes that are, a u32.
func pathReadlink(_ context.Context, p *Process, m memory, a []uint64) errno {
	h, e := p.file(a[0], rightReadlink, eNOTDIR)
	if e != success {
		return e
	}
	path, e := m.path(a[1], a[2])
	if e != success {
		return e
	}
	buf, ok := m.bytes(low(a[3]), low(a[4]))
	if !ok {
		return eFAULT
	}
	used, ok := m.bytes(low(a[5]), 4)
	if !ok {
		return eFAULT
	}
	target, err := h.Readlink(path)
	if err != nil {
		return p.result(err)
	}
	le.PutUint32(used, uint32(copy(buf, target)))
	return success
}
