package wasi

import "github.com/sandboxd/sandboxd/capabilities"

// errno is an error number of preview 1.
type errno uint32

// The error numbers that the host returns (preview 1, errno).
const (
	success      errno = 0
	eACCES       errno = 2
	eAGAIN       errno = 6
	eBADF        errno = 8
	eBUSY        errno = 10
	eCONNREFUSED errno = 14
	eEXIST       errno = 20
	eFAULT       errno = 21
	eFBIG        errno = 22
	eILSEQ       errno = 25
	eINVAL       errno = 28
	eIO          errno = 29
	eISDIR       errno = 31
	eLOOP        errno = 32
	eMFILE       errno = 33
	eNAMETOOLONG errno = 37
	eNOENT       errno = 44
	eNOSPC       errno = 51
	eNOSYS       errno = 52
	eNOTDIR      errno = 54
	eNOTEMPTY    errno = 55
	eNOTSUP      errno = 58
	ePERM        errno = 63
	eROFS        errno = 69
	eSPIPE       errno = 70
	eXDEV        errno = 75
	eNOTCAPABLE  errno = 76
)

// number returns the preview 1 number of a file error; EIO for one that has
// none.
func number(e capabilities.Errno) errno {
	switch e {
	case capabilities.EACCES:
		return eACCES
	case capabilities.EAGAIN:
		return eAGAIN
	case capabilities.EBADF:
		return eBADF
	case capabilities.EBUSY:
		return eBUSY
	case capabilities.ECONNREFUSED:
		return eCONNREFUSED
	case capabilities.EEXIST:
		return eEXIST
	case capabilities.EFBIG:
		return eFBIG
	case capabilities.EILSEQ:
		return eILSEQ
	case capabilities.EINVAL:
		return eINVAL
	case capabilities.EIO:
		return eIO
	case capabilities.EISDIR:
		return eISDIR
	case capabilities.ELOOP:
		return eLOOP
	case capabilities.EMFILE:
		return eMFILE
	case capabilities.ENAMETOOLONG:
		return eNAMETOOLONG
	case capabilities.ENOENT:
		return eNOENT
	case capabilities.ENOSPC:
		return eNOSPC
	case capabilities.ENOTDIR:
		return eNOTDIR
	case capabilities.ENOTEMPTY:
		return eNOTEMPTY
	case capabilities.ENOTSUP:
		return eNOTSUP
	case capabilities.EPERM:
		return ePERM
	case capabilities.EROFS:
		return eROFS
	case capabilities.EXDEV:
		return eXDEV
	}
	return eIO
}
