// Package faults has single system calls of the commands, as they are shipped, fail or
// be the last one, and checks that no entry is lost or doubled by it, and that what is
// due comes all the same. It has only tests.
package faults
