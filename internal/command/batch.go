package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"heartbeat/inbox"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/price"
)

// The formats of a batch.
const (
	formatJSON  = "json"
	formatLines = "lines" // any text is valid, too
)

func parseLine(line []byte, format string) (inbox.Message, error) {
	m, err := inbox.ParseMessage(line)
	if err == nil {
		_, err = price.ParseSentLimits(m.Limits)
	}
	var envelope struct{ Prompt *string }
	switch {
	case err == nil:
		return m, nil
	case json.Unmarshal(line, &envelope) == nil && envelope.Prompt != nil: // an envelope with a fault, and no text
		return m, err
	case format == formatLines:
		return inbox.Message{Text: string(line)}, nil
	}
	return m, fmt.Errorf("%w (--format lines takes any line for a text)", err)
}

// readBatch reads a file of lines, or stdin if the path is -, and completes each message. It skips blank lines. A
// line that is no entry is an error, so that nothing is sent.
func readBatch(path, format string, stdin *os.File, complete func(*inbox.Message)) (all []inbox.Message, err error) {
	in := stdin
	if path == "-" {
		path = "stdin"
	} else {
		if in, err = os.Open(path); err != nil {
			return nil, fmt.Errorf("send: %w", err)
		}
		defer func() { err = errors.Join(err, in.Close()) }()
	}
	lines := bufio.NewScanner(program.UTF8(in))
	lines.Buffer(nil, inbox.MaxLine+1)
	for n := 1; lines.Scan(); n++ {
		l := bytes.TrimSpace(lines.Bytes())
		if len(l) == 0 {
			continue
		}
		m, err := parseLine(l, format)
		if err == nil {
			complete(&m)
			err = m.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("send: read %s, line %d: %w: nothing was sent", path, n, err)
		}
		all = append(all, m)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("send: read %s: a line is longer than %d bytes, the most that is delivered: nothing was sent", path, inbox.MaxLine)
	case err != nil:
		return nil, fmt.Errorf("send: read %s: %w: nothing was sent", path, err)
	case len(all) == 0:
		return nil, fmt.Errorf("send: read %s: no entry is in it: nothing was sent", path)
	}
	return all, nil
}
