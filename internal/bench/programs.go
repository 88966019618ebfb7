package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programs are the paths of what is run.
type programs struct {
	dir       string
	hook      string // heartbeat-stop
	heartbeat string
	launch    string // heartbeat-launch
	host      string // heartbeat-host
	meter     string // heartbeat-meter
	watch     string // heartbeat-watch
	nats      string // heartbeat-nats
	mcp       string // heartbeat-mcp
	twoWrites string // the baseline
	empty     string // the floor of a start
	peak      string // runs a program and reports its peak memory
}

// build makes the programs in a temporary directory of their own, since the scratch
// directory may be on a file system without exec. It copies them, as installing does:
// the pages that the linker wrote stay in the page cache in small pieces, from which a
// big program starts a tenth slower.
func build(ctx context.Context) (programs, error) {
	dir, err := os.MkdirTemp("", "heartbeat-bench-bin-")
	if err != nil {
		return programs{}, fmt.Errorf("build: %w", err)
	}
	p := programs{
		dir: dir, hook: filepath.Join(dir, "heartbeat-stop"), heartbeat: filepath.Join(dir, "heartbeat"), launch: filepath.Join(dir, "heartbeat-launch"), host: filepath.Join(dir, "heartbeat-host"), meter: filepath.Join(dir, "heartbeat-meter"), watch: filepath.Join(dir, "heartbeat-watch"), nats: filepath.Join(dir, "heartbeat-nats"), mcp: filepath.Join(dir, "heartbeat-mcp"),
		twoWrites: filepath.Join(dir, "twowrites"), peak: filepath.Join(dir, "peak"), empty: filepath.Join(dir, "empty"),
	}
	linked := filepath.Join(dir, "linked") + string(filepath.Separator)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", linked,
		"heartbeat/cmd/heartbeat", "heartbeat/cmd/heartbeat-stop", "heartbeat/cmd/heartbeat-launch", "heartbeat/cmd/heartbeat-host", "heartbeat/cmd/heartbeat-meter", "heartbeat/cmd/heartbeat-watch", "heartbeat/cmd/heartbeat-nats", "heartbeat/cmd/heartbeat-mcp", "heartbeat/internal/bench/twowrites", "heartbeat/internal/bench/peak", "heartbeat/internal/bench/empty")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(linked))
	}
	if err != nil {
		return programs{}, errors.Join(fmt.Errorf("build: %w: %s", err, bytes.TrimSpace(out)), p.remove())
	}
	return p, nil
}

func (p programs) remove() error { return os.RemoveAll(p.dir) }
