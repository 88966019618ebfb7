package machine

import (
	"errors"
	"slices"
	"syscall"
)

// passing are the errors of a machine that is short of something, or busy with a file.
var passing = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // room
	syscall.EMFILE, syscall.ENFILE, // descriptors
	syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, // processes, memory
	syscall.ETXTBSY, syscall.ESTALE, // a program or a file that is being replaced
}

// Passes reports whether an error is one of a machine that is short of something, which may
// be over by the next try without anybody's doing.
func Passes(err error) bool {
	return slices.ContainsFunc(passing, func(no syscall.Errno) bool { return errors.Is(err, no) })
}

// OutOfSpace reports whether an error is that of a file system that is full.
func OutOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
