package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// maxAddress is the longest path that a unix socket's address holds on each system,
// with a zero byte behind it: sun_path is 108 bytes on Linux and 104 elsewhere.
const maxAddress = 103

// address returns a path by which the socket in the folder can be bound and dialed
// however long the folder's own path is. release is to be called after that.
func address(folder string) (path string, release func(), err error) {
	path = filepath.Join(folder, SocketName)
	if len(path) <= maxAddress {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path %s has %d bytes, and that of a socket may have %d here: put the database into a folder with a shorter path", path, len(path), maxAddress)
	}
	dir, err := openFolder(folder)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + SocketName, func() { closeFolder(dir) }, nil
}
