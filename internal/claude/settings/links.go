package settings

import (
	"fmt"
	"path/filepath"
)

// Links says what becomes of a settings file that is reached by a symbolic link.
type Links bool

const (
	// RefuseLinks edits no file but the one that was named. A repository may bring a link to any other.
	RefuseLinks Links = false
	// FollowLinks edits the file that the link leads to.
	FollowLinks Links = true
)

// LinkError says that the file to be edited is another one than was named.
type LinkError struct{ Path, Target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link, and %s would be edited: name that file, or say with --follow that it is meant", e.Path, e.Target)
}

// check refuses a link in the file's place, and in that of its .claude directory.
func (l Links) check(path, target string) error {
	if l == FollowLinks {
		return nil
	}
	if isLink(path) {
		return &LinkError{path, target}
	}
	if dir := filepath.Dir(path); filepath.Base(dir) == ".claude" && isLink(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			target = filepath.Join(real, filepath.Base(path))
		}
		return &LinkError{dir, target}
	}
	return nil
}
