package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// bench is one run of this command.
type bench struct {
	ctx      context.Context
	plan     plan
	programs programs
	dir      string // the scratch directory
	log      io.Writer
	sync     time.Duration // how much longer each sync takes than on this disk
}

// newBench builds the programs, and makes a scratch directory below dir.
func newBench(ctx context.Context, p plan, dir string, log io.Writer) (*bench, error) {
	b := &bench{ctx: ctx, plan: p, log: log}
	var err error
	if b.programs, err = build(ctx); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp(dir, "heartbeat-bench-"); err != nil {
		return nil, errors.Join(fmt.Errorf("make a scratch directory: %w", err), b.programs.remove())
	}
	return b, nil
}

func (b *bench) remove() error {
	return errors.Join(os.RemoveAll(b.dir), b.programs.remove())
}

// say reports progress to stderr; the tables go to stdout.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.log, "bench: "+format+"\n", args...)
}

// folder makes a directory in the scratch directory.
func (b *bench) folder(name string) (string, error) {
	path := filepath.Join(b.dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	return path, nil
}
