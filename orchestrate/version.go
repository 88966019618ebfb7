package orchestrate

import (
	"context"
	"path/filepath"

	"heartbeat/internal/disk"
)

// versionName is the file beside the inbox that says which installed CLI was asked
// for its version: asking costs as much as a step.
const versionName = ".babysitter-version"

// versioned is a Writer that can tell which version it is.
type versioned interface {
	Identity() (string, error)
	Version(ctx context.Context) (string, error)
}

// seeVersion has the CLI say its version, once for each that is installed and each
// inbox: another than the measured one is noted by it. Nothing fails for that.
func (s *step) seeVersion(ctx context.Context) {
	cli, ok := s.CLI.(versioned)
	if !ok {
		return
	}
	installed, err := cli.Identity()
	if err != nil {
		return // the next call says why it cannot be run
	}
	path := filepath.Join(s.Box.Dir(), versionName)
	if asked, err := disk.ReadState(path, maxVersion); err == nil && string(asked) == installed {
		return
	}
	if _, err := cli.Version(ctx); err == nil {
		_ = disk.Publish(path, []byte(installed), false) // without it, the version is asked for again
	}
}

// maxVersion bounds what such a file holds: a command and a path.
const maxVersion = 64 << 10
