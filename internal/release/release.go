// Package release says of which release the running command is.
package release

import "runtime/debug"

// version is set by who builds a release, with the linker's -X: a module without a tag in
// a repository of its own has no version that the Go command could note.
var version string

// Version is such as "1.4.0", or "(devel)" for a build that is of no release.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
