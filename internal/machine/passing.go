package machine

import (
	"errors"
	"slices"
	"syscall"
)

// passing lists the errors of a machine that lacks a resource or is busy with a file.
var passing = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // room
	syscall.EMFILE, syscall.ENFILE, // descriptors
	syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, // processes, memory
	syscall.ETXTBSY, syscall.ESTALE, // a program or a file that is being replaced
}

// Passes reports whether an error comes from a shortage that may be gone at the next try.
func Passes(err error) bool {
	return slices.ContainsFunc(passing, func(no syscall.Errno) bool { return errors.Is(err, no) })
}

// OutOfSpace reports whether an error means a full file system or quota.
func OutOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
