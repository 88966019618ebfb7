package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lane is an inbox in a directory of its own, and a session that drains it.
type lane struct {
	*runner
	*session
	hook  string
	dir   string
	inbox string
	next  int // the entry that the next tick must deliver
}

// lane makes a directory for an inbox that does not exist yet.
func (b *bench) lane(name string) (*lane, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	s, err := newSession(dir)
	if err != nil {
		return nil, err
	}
	r, err := b.runner()
	if err != nil {
		return nil, err
	}
	return &lane{runner: r, session: s, hook: b.programs.hook, dir: dir, inbox: filepath.Join(dir, "inbox.jsonl")}, nil
}

// filledLane is a lane with the first n entries in its inbox.
func (b *bench) filledLane(name string, n int) (*lane, error) {
	l, err := b.lane(name)
	if err != nil {
		return nil, err
	}
	return l, writeInbox(l.inbox, n)
}

// tick runs the hook once. It must deliver the next entry.
func (l *lane) tick() (time.Duration, error) { return l.tickBy(l.hook, "--inbox", l.inbox) }

func (l *lane) tickBy(argv ...string) (time.Duration, error) {
	stdin, err := l.stop()
	if err != nil {
		return 0, err
	}
	out, took, err := l.run(stdin, argv...)
	if err == nil {
		err = l.delivered(out)
	}
	if err != nil {
		return 0, fmt.Errorf("tick %d: %w", l.turns, err)
	}
	return took, nil
}

// delivered checks that a hook's stdout delivers the next entry.
func (l *lane) delivered(stdout []byte) error {
	text, err := blockReason(stdout)
	if err != nil {
		return err
	}
	if want := entry(l.next); text != want {
		return fmt.Errorf("delivered %.40q instead of %.40q", text, want)
	}
	l.next++
	return nil
}

// finish acknowledges the last entry: the stop must be approved.
func (l *lane) finish() error {
	stdin, err := l.stop()
	if err != nil {
		return err
	}
	out, _, err := l.run(stdin, l.hook, "--inbox", l.inbox)
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("the last tick delivered %.40q", out)
	}
	return err
}

// restart removes all state and sets the cursor before the i-th entry.
func (l *lane) restart(i int) error {
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			err = errors.Join(err, os.Remove(filepath.Join(l.dir, f.Name())))
		}
	}
	cursor := strconv.Itoa(i * entrySize)
	err = errors.Join(err, os.WriteFile(filepath.Join(l.dir, ".inbox-offset"), []byte(cursor), 0o600))
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	l.next = i
	return nil
}
