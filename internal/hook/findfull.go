package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
)

// findFull returns the path of the full command. Another program of that name is
// refused: it would decide the hook's exit status. Many programs end with [ExitWake] when
// they do not understand their arguments, and Claude Code would then give the model what
// they print, at every Stop.
func findFull() (string, error) {
	program, err := cli.Beside(FullCommand)
	if err != nil {
		return "", err
	}
	switch can, err := takesOver(program); {
	case errors.Is(err, fs.ErrPermission): // a program can be for running only
		return program, nil
	case err != nil:
		return "", fmt.Errorf("look whether it can take over: %w", err)
	case !can:
		return "", fmt.Errorf("%s is another program, or of another release: install all of heartbeat's commands into one folder", program)
	}
	return program, nil
}

// takesOver reports whether the program's file contains [handedOverFlag], as each release
// does that understands it. To ask the program would start one more process at each Stop,
// and nobody knows what another program does when it is asked. Links are followed: the
// file is about to be run.
func takesOver(program string) (is bool, err error) {
	f, err := os.OpenFile(program, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	// The texts of a Go program come after its code, which is most of the first third.
	for _, from := range []int64{info.Size() / 3, 0} {
		if is, err = contains(io.NewSectionReader(f, from, info.Size()-from), []byte(handedOverFlag)); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func contains(r io.Reader, text []byte) (bool, error) {
	b, kept := make([]byte, searched), 0
	for {
		n, err := r.Read(b[kept:])
		read := b[:kept+n]
		switch {
		case bytes.Contains(read, text):
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
		// The text may lie across two reads.
		kept = copy(b, read[max(0, len(read)-len(text)+1):])
	}
}

// searched is how many bytes are read at a time.
const searched = 128 << 10
