// Command twowrites is the baseline of a tick: it does nothing but two atomic
// writes, one for each of the files that heartbeat-rs keeps its state in.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: twowrites DIRECTORY")
		os.Exit(1)
	}
	inFlight := []byte(`{"raw_line":"` + strings.Repeat("x", 1023) + `"}`)
	for _, f := range []struct {
		name    string
		content []byte
	}{{".inbox-offset", []byte("409600")}, {".in-flight", inFlight}} {
		if err := write(os.Args[1], f.name, f.content); err != nil {
			fmt.Fprintln(os.Stderr, "twowrites:", err)
			os.Exit(1)
		}
	}
}

// write replaces a file such that a power loss leaves the old or the new one.
func write(dir, name string, content []byte) error {
	f, err := os.CreateTemp(dir, name)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	return d.Close()
}
