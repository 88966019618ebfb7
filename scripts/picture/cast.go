package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// cast is a recording of one size.
type cast struct {
	rows, cols int
	events     []event
}

// event is what a terminal was sent at a time since the recording began.
type event struct {
	at   time.Duration
	text string
}

// limits of a recording, which somebody else may have made.
const (
	maxLine = 16 << 20 // bytes
	maxSide = 500      // rows or columns
)

// read takes a whole recording. The error says which line is wrong.
func read(r io.Reader) (*cast, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("it is empty"), lines.Err())
	}
	var head struct{ Version, Width, Height int }
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if head.Version != 2 {
		return nil, fmt.Errorf("line 1: this is version %d of asciicast, and only version 2 is read", head.Version)
	}
	if min(head.Width, head.Height) < 1 || max(head.Width, head.Height) > maxSide {
		return nil, fmt.Errorf("line 1: a terminal of %dx%d cannot be drawn", head.Width, head.Height)
	}
	c := &cast{rows: head.Height, cols: head.Width}
	for n := 2; lines.Scan(); n++ {
		if err := c.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return c, lines.Err()
}

func (c *cast) add(line []byte) error {
	var seconds float64
	var kind, text string
	if err := json.Unmarshal(line, &[]any{&seconds, &kind, &text}); err != nil {
		return err
	}
	switch kind {
	case "o":
		c.events = append(c.events, event{time.Duration(seconds * float64(time.Second)), text})
	case "r":
		return errors.New("the terminal changed its size: record the session in one size")
	}
	return nil
}
