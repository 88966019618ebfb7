package hosting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

const (
	// logPart is how much of a log is read at a time, in bytes.
	logPart = 64 << 10
	// logPoll is how often a log that is followed is looked at.
	logPoll = 200 * time.Millisecond
)

// logReader prints a log's lines as they come.
type logReader struct {
	file *disk.File
	at   int64  // up to where it was read
	rest []byte // a last line without its end
	show func(line []byte) error
}

func logs(o *verbs.Logs, s cli.Streams) (err error) {
	h, err := find(&o.Look)
	if err != nil {
		return err
	}
	file, err := disk.OpenForeign(h.State.LogPath, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s has no log: %s is not there", h.ID, h.State.LogPath)
	}
	if err != nil {
		return fmt.Errorf("read the log of session %s: %w", h.ID, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r := &logReader{file: file, show: lineOf(o, s)}
	if r.at, err = lastLines(file, o.Count); err != nil {
		return err
	}
	if !o.Follow {
		return errors.Join(r.more(), r.last())
	}
	ctx, stop, status := untilSignal()
	defer stop()
	return status(r.follow(ctx, h))
}

// lineOf returns what prints a line.
func lineOf(o *verbs.Logs, s cli.Streams) func([]byte) error {
	if o.JSON {
		return func(line []byte) error {
			return printJSON(s, struct {
				Line string `json:"line"`
			}{string(line)})
		}
	}
	return func(line []byte) error {
		_, err := fmt.Fprintln(s.Out, words.Plain(string(line)))
		return err
	}
}

// lastLines is the offset at which the last lines of a file begin; 0 of them are all.
func lastLines(file *disk.File, count int) (int64, error) {
	info, err := file.Stat()
	if err != nil || count == 0 {
		return 0, err
	}
	part := make([]byte, logPart)
	for at, end := info.Size, info.Size; at > 0; {
		n := min(at, logPart)
		at -= n
		if _, err := file.ReadAt(part[:n], at); err != nil {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if part[i] != '\n' || at+i == end-1 { // the end of the last line
				continue
			}
			if count--; count == 0 {
				return at + i + 1, nil
			}
		}
	}
	return 0, nil
}

// more prints the whole lines that have come.
func (r *logReader) more() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	part := make([]byte, logPart)
	for r.at < info.Size {
		n := min(info.Size-r.at, logPart)
		if _, err := r.file.ReadAt(part[:n], r.at); err != nil {
			return err
		}
		r.at += n
		r.rest = append(r.rest, part[:n]...)
		for {
			line, rest, found := bytes.Cut(r.rest, []byte("\n"))
			if !found && len(r.rest) < 16*logPart {
				break
			}
			if !found { // a line without end is printed in pieces
				line, rest = r.rest, nil
			}
			if err := r.show(line); err != nil {
				return err
			}
			r.rest = rest
		}
	}
	return nil
}

// last prints a last line without its end.
func (r *logReader) last() error {
	if len(r.rest) == 0 {
		return nil
	}
	return r.show(r.rest)
}

// follow prints what comes until nobody works on the session any more.
func (r *logReader) follow(ctx context.Context, h *hosted) error {
	for {
		over := h.reopen() != nil || !h.worked
		if err := r.more(); err != nil {
			return err
		}
		if over {
			return r.last()
		}
		select {
		case <-time.After(logPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
