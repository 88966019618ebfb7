package settings

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Links is how a settings file behind a symbolic link is treated.
type Links bool

const (
	// RefuseLinks edits only the file that was named: a repository may contain a link to any other file.
	RefuseLinks Links = false
	// FollowLinks edits the file that the link leads to.
	FollowLinks Links = true
)

// LinkError says that the path leads to another file than the one that was named.
type LinkError struct{ Path, Target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link, and %s would be edited: name that file, or say with --follow that it is meant", e.Path, e.Target)
}

// check refuses a path that is a link, or whose .claude directory is one.
func (l Links) check(path, target string) error {
	if l == FollowLinks {
		return nil
	}
	if isLink(path) {
		return &LinkError{path, target}
	}
	if dir := filepath.Dir(path); slices.Contains([]string{".claude", ".codex"}, filepath.Base(dir)) && isLink(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			target = filepath.Join(real, filepath.Base(path))
		}
		return &LinkError{dir, target}
	}
	return nil
}
