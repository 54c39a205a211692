package wasi

import "github.com/sandboxd/sandboxd/capabilities/volume"

// rights is what a descriptor may be used for (preview 1, rights). They are
// reported and can be given up; authority comes from the call's grant alone.
type rights uint64

// The rights, in the order of their bits.
const (
	rightDatasync rights = 1 << iota
	rightRead
	rightSeek
	rightSetFlags
	rightSync
	rightTell
	rightWrite
	rightAdvise
	rightAllocate
	rightCreateDirectory
	rightCreateFile
	rightLinkSource
	rightLinkTarget
	rightOpen
	rightReaddir
	rightReadlink
	rightRenameSource
	rightRenameTarget
	rightPathFilestatGet
	rightPathSetSize
	rightPathSetTimes
	rightFilestatGet
	rightSetSize
	rightSetTimes
	rightSymlink
	rightRemoveDirectory
	rightUnlinkFile
	rightPoll
	rightSockShutdown
	rightSockAccept

	allRights = rightSockAccept<<1 - 1
)

const (
	streamRights = rightSetFlags | rightFilestatGet | rightPoll
	fileRights   = streamRights | rightDatasync | rightSync | rightSeek | rightTell | rightAdvise
	writeRights  = rightWrite | rightAllocate | rightSetSize | rightSetTimes
	dirRights    = rightSetFlags | rightSync | rightCreateDirectory | rightCreateFile | rightLinkSource |
		rightLinkTarget | rightOpen | rightReaddir | rightReadlink | rightRenameSource | rightRenameTarget |
		rightPathFilestatGet | rightPathSetSize | rightPathSetTimes | rightFilestatGet | rightSetTimes |
		rightSymlink | rightRemoveDirectory | rightUnlinkFile
)

// natural returns what a descriptor can do in fact, and what descriptors that
// are opened below it can.
func (d *descriptor) natural() (base, inheriting rights) {
	switch {
	case d.stream == stdin:
		return streamRights | rightRead, 0
	case d.file == nil:
		return streamRights | rightWrite, 0
	case d.file.Kind() == volume.Dir:
		return dirRights, allRights
	}
	base = fileRights
	if d.file.Readable() {
		base |= rightRead
	}
	if d.file.Writable() {
		base |= writeRights
	}
	return base, 0
}

// rights returns what is left of the natural rights.
func (d *descriptor) rights() (base, inheriting rights) {
	base, inheriting = d.natural()
	return base &^ d.dropped, inheriting &^ d.uninherit
}
