// Command twowrites is the baseline of a tick: it does nothing but two atomic
// writes, one for each of the files that heartbeat-rs keeps its state in.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	dir := os.Args[1]
	err := write(dir, ".inbox-offset", "409600")
	if err == nil {
		err = write(dir, ".in-flight", `{"raw_line":"`+strings.Repeat("x", 1023)+`"}`)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "twowrites:", err)
		os.Exit(1)
	}
}

// write replaces a file such that a power loss leaves the old or the new one.
func write(dir, name, content string) error {
	f, err := os.CreateTemp(dir, name)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(dir, name))); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
