package main

import "time"

// baseline is a program that does only what heartbeat-rs does for each promise: two
// atomic writes.
type baseline struct {
	*runner
	program, dir string
}

func (b *bench) baseline(name string) (*baseline, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	r, err := b.runner()
	if err != nil {
		return nil, err
	}
	return &baseline{runner: r, program: b.programs.twoWrites, dir: dir}, nil
}

func (b *baseline) write() (time.Duration, error) {
	_, took, err := b.run(nil, b.program, b.dir)
	return took, err
}
