package wasi

import (
	"crypto/rand"
	"io"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
)

// Options of a [Process]. The zero Options give a process without files,
// arguments, environment, input and output, that may open no socket.
type Options struct {
	Args []string // the program's name first; without NUL bytes
	Env  []string // "KEY=value"; without NUL bytes

	Stdin io.Reader // nil: at its end

	// StdinBlocks says that a Read of Stdin may wait, as one of a terminal or a
	// pipe does. Each is then done in a goroutine, and the end of the context
	// stops a guest that waits for it. The goroutine stays until Read returns,
	// and what that brings is lost; one that never returns keeps it for ever.
	// Without StdinBlocks, for what is in memory, Read is called directly.
	StdinBlocks bool

	// Stdout and Stderr are called directly: while a Write waits, nothing stops
	// the guest. It is handed at most 1 MiB at a time.
	Stdout io.Writer // nil: dropped. A *OutputLimitError that it returns stops the guest
	Stderr io.Writer // nil: dropped. Its errors are not told to the guest

	// Volumes are opened before the guest starts, at their mounts: the
	// descriptors from 3 on, in this order, scratch last by convention. They
	// do not count against what the guest can open.
	Volumes []*files.Volume

	// AtInput is called when the guest reads standard input for the first time, by
	// whatever number, before anything of it is read; see [AtInput]. nil: it is read.
	AtInput AtInput

	// Processor is what the guest runs by. It is left while the process waits: for
	// clocks, and for Stdin where StdinBlocks. nil: the guest needs none.
	Processor Processor

	Ledger *capabilities.Ledger // judges sockets; nil: one that grants nothing

	Random io.Reader // nil: crypto/rand
	Clock  Clock     // nil: the host's, monotonic since NewProcess
}

// Process is what a guest sees of the world during one call: arguments,
// environment, streams, clocks, randomness and open files. It serves one guest
// and is not safe for concurrent use.
type Process struct {
	args, env      []string
	stdin          io.Reader
	stdinBlocks    bool
	stdout, stderr io.Writer
	atInput        AtInput
	ledger         *capabilities.Ledger
	processor      Processor
	random         io.Reader
	clock          Clock
	table          table
	streams        [stderr]descriptor
	slots          [8]*descriptor // of the table, while they do
	volumes        []*files.Volume
	stop           error

	module        api.Module // whose memory is cached
	memory        memory
	buffers       [][]byte       // reused by reads and writes
	subscriptions []subscription // reused by poll_oneoff
	listings      []*listing     // kept for fd_readdir, the latest last
}

// NewProcess returns the process of a call. Close it when the call has ended.
func NewProcess(o Options) *Process {
	p := &Process{
		args: o.Args, env: o.Env,
		stdin: o.Stdin, stdinBlocks: o.StdinBlocks, stdout: o.Stdout, stderr: o.Stderr, atInput: o.AtInput,
		ledger: o.Ledger, processor: o.Processor, random: o.Random, clock: o.Clock, volumes: o.Volumes,
		table: table{limit: maxDescriptors + len(o.Volumes)},
	}
	if p.ledger == nil {
		p.ledger = capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{})
	}
	if p.random == nil {
		p.random = rand.Reader
	}
	if p.clock == nil {
		p.clock = hostClock{time.Now()}
	}
	p.table.slots = p.slots[:0]
	for i := range p.streams {
		p.streams[i].stream = stdin + stream(i)
		p.table.add(&p.streams[i])
	}
	opened := make([]descriptor, len(o.Volumes))
	for i, v := range o.Volumes {
		opened[i].file, opened[i].preopen = v.Root(), v.Mount()
		p.table.add(&opened[i])
	}
	return p
}

// Stop returns what stopped the guest, nil while nothing has. It is also what
// every further call of a host function stops with.
func (p *Process) Stop() error { return p.stop }

// Close closes all descriptors. The volumes stay open: they are the caller's.
func (p *Process) Close() {
	p.table.close()
}

// get returns an open descriptor that did not give up the rights.
func (p *Process) get(fd uint64, need rights) (*descriptor, errno) {
	d, ok := p.table.get(fd)
	switch {
	case !ok:
		return nil, eBADF
	case d.dropped&need != 0:
		return nil, eNOTCAPABLE
	}
	return d, success
}

// own returns an open descriptor for a function that is done by the descriptor
// itself. On a volume that is still sealed that function stops the guest.
func (p *Process) own(name capabilities.Operation, fd uint64, need rights) (*descriptor, errno) {
	d, e := p.get(fd, need)
	if e == success && d.file != nil && d.file.Volume().Sealed() {
		p.raise(&files.SealedError{Operation: name, Path: d.file.Volume().Mount()})
	}
	return d, e
}

// file returns an open file or directory; streams have none.
func (p *Process) file(fd uint64, need rights, none errno) (*files.Handle, errno) {
	d, e := p.get(fd, need)
	switch {
	case e != success:
		return nil, e
	case d.file == nil:
		return nil, none
	}
	return d.file, success
}

// device returns the number by which a guest tells volumes apart, from 1.
func (p *Process) device(v *files.Volume) uint64 {
	return uint64(slices.Index(p.volumes, v)) + 1
}
