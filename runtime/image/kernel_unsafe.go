//go:build linux

package image

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// area is a row of addresses.
type area struct {
	base unsafe.Pointer
	size uint64
}

func (a area) bytes(from, to uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, from)), to-from)
}

func (a area) address() uint64 { return uint64(uintptr(a.base)) }

// linux is the kernel that this process runs on.
type linux struct{}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL

func (l linux) file(memory []byte, c *contents) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	// Where vm.memfd_noexec demands it, only files without the right to be
	// executed are made; kernels before 6.3 do not know that flag.
	fd, err := unix.MemfdCreate("sandboxd-image", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("sandboxd-image", flags)
	}
	if err != nil {
		return -1, fmt.Errorf("memory image: memfd_create: %w", err)
	}
	if err := fill(fd, memory, c); err != nil {
		return -1, errors.Join(err, l.close(fd))
	}
	return fd, nil
}

func fill(fd int, memory []byte, c *contents) error {
	if err := unix.Ftruncate(fd, int64(c.end)); err != nil {
		return fmt.Errorf("memory image: ftruncate: %w", err)
	}
	for p, filled := range c.filled {
		at := uint64(p) * c.page
		for rest := memory[at : at+c.page]; filled && len(rest) > 0; {
			n, err := unix.Pwrite(fd, rest, int64(at+c.page)-int64(len(rest)))
			if err == nil && n == 0 {
				err = io.ErrShortWrite
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("memory image: pwrite: %w", err)
			}
			rest = rest[max(n, 0):]
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("memory image: sealing: %w", err)
	}
	return nil
}

func (linux) view(fd int, size uint64) ([]byte, error) {
	b, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory image: mmap: %w", err)
	}
	return b, nil
}

func (linux) unview(view []byte) error { return unix.Munmap(view) }

func (linux) pagemap() (int, error) {
	return unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func (linux) close(fd int) error { return unix.Close(fd) }

func (l linux) reserve(size uint64) (area, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return area{}, fmt.Errorf("memory image: %d addresses: %w", size, err)
	}
	a := area{base: p, size: size}
	if err := whole(a.bytes(0, size)); err != nil {
		return area{}, errors.Join(err, l.release(a, 0))
	}
	return a, nil
}

// whole keeps the kernel from joining pages to huge ones, of which a guest that
// wrote a byte would have two megabytes of its own. Kernels without huge pages do
// not know the advice.
func whole(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("memory image: madvise: %w", err)
	}
	return nil
}

func (linux) open(a area, from, to uint64) error {
	if err := unix.Mprotect(a.bytes(from, to), unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("memory image: mprotect: %w", err)
	}
	return nil
}

func (linux) overlay(a area, fd int, size uint64) error {
	_, err := unix.MmapPtr(fd, 0, a.base, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("memory image: mmap: %w", err)
	}
	return whole(a.bytes(0, size))
}

func (linux) drop(a area, from, to uint64) error {
	if err := unix.Madvise(a.bytes(from, to), unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("memory image: madvise: %w", err)
	}
	return nil
}

// Of include/uapi/linux/fs.h (Linux 6.7).
const (
	pagemapScan   = 0xC0606610
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5
)

type pageRegion struct{ start, end, categories uint64 }

// scanBuffer is where the kernel writes what it finds. It must not be on a stack,
// which may move while the kernel is told its address as a number.
type scanBuffer struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64 // struct pm_scan_arg
	inverted, mask, anyOf, returned                         uint64

	found [64]pageRegion
	base  uint64
}

const scanArgument = 12 * 8 // bytes

// region returns the bounds of a region from the start of the area.
func (b *scanBuffer) region(i int) (from, to uint64) {
	return b.found[i].start - b.base, b.found[i].end - b.base
}

func (linux) scan(pagemap int, a area, from, to uint64, b *scanBuffer) (int, uint64, error) {
	b.base = a.address()
	b.size, b.start, b.end = scanArgument, b.base+from, b.base+to
	b.vec, b.vecLen = uint64(uintptr(unsafe.Pointer(&b.found))), uint64(len(b.found))
	b.inverted, b.mask = pageIsFile|pageIsZero, pageIsFile|pageIsZero
	b.anyOf, b.returned = pageIsPresent|pageIsSwapped, pageIsFile
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(pagemap), pagemapScan, uintptr(unsafe.Pointer(b)))
	if e != 0 {
		return 0, 0, fmt.Errorf("memory image: PAGEMAP_SCAN: %w", e)
	}
	return int(n), b.walkEnd - b.base, nil
}

func (linux) entries(pagemap int, a area, from uint64, entries []uint64) error {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entries))), len(entries)*8)
	at := int64((a.address() + from) / uint64(unix.Getpagesize()) * 8)
	for len(raw) > 0 {
		n, err := unix.Pread(pagemap, raw, at)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("memory image: /proc/self/pagemap: %w", err)
		}
		raw, at = raw[n:], at+int64(n)
	}
	return nil
}

func (linux) release(a area, from uint64) error {
	if err := unix.MunmapPtr(unsafe.Add(a.base, from), uintptr(a.size-from)); err != nil {
		return fmt.Errorf("memory image: munmap: %w", err)
	}
	return nil
}
