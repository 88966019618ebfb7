// Package lines reads lines of files that other programs may be writing to: a
// last line may still lack its end, a line may be longer than memory allows, and
// zeros may stand where a hole was made or where a power loss took bytes.
package lines
