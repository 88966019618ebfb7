package orchestrate

import (
	"context"
	"path/filepath"

	"heartbeat/internal/disk"
)

// versionName is the file beside the inbox that names the installed CLI whose version was
// checked last. The check takes as long as a step, so it is made once for each CLI.
const versionName = ".babysitter-version"

// versioned is a Writer that knows its version.
type versioned interface {
	Identity() (string, error)
	Version(ctx context.Context) (string, error)
}

// checkVersion asks the CLI for its version, once for each installed CLI and inbox. The CLI
// notes a version other than the measured one; no error comes of it.
func (s *step) checkVersion(ctx context.Context) {
	cli, ok := s.Bridge.CLI.(versioned)
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

// maxVersion bounds the size of that file, which holds a command and a path.
const maxVersion = 64 << 10
