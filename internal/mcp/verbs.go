package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"heartbeat/internal/cli"
)

// verbs runs the verbs of heartbeat about an inbox.
type verbs struct{ inbox string }

const (
	verbTime = time.Minute
	// maxAnswer is the most that a model is given of what a verb prints.
	maxAnswer = 1 << 20
)

// answer is what a verb printed: a JSON object a line.
type answer struct {
	Lines []json.RawMessage `json:"lines"`
	// Truncated says that there was more.
	Truncated bool `json:"truncated,omitempty"`
}

// run runs a verb with --json. What comes from a client is an argument of its own behind --,
// and never a flag or a part of a command line.
func (v verbs) run(ctx context.Context, verb string, args ...string) (answer, error) {
	path, err := cli.Beside("heartbeat")
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, verbTime)
	defer cancel()
	words := append(strings.Fields(verb), "--json", "--inbox", v.inbox)
	cmd := exec.CommandContext(ctx, path, append(words, args...)...)
	out, said := &bounded{most: maxAnswer}, &bounded{most: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err = cmd.Run()
	if sentence := strings.TrimPrefix(strings.TrimSpace(said.String()), "heartbeat: "); err != nil && sentence != "" {
		err = errors.New(sentence)
	} else if err != nil {
		err = fmt.Errorf("heartbeat %s: %w", verb, err)
	}
	if err != nil {
		return answer{}, err
	}
	a := answer{Lines: []json.RawMessage{}, Truncated: out.over}
	for line := range bytes.Lines(out.Bytes()) {
		if line = bytes.TrimSpace(line); json.Valid(line) { // the last one may be cut
			a.Lines = append(a.Lines, line)
		}
	}
	return a, nil
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), b.most-b.Len())
	b.over = b.over || keep < len(p)
	_, _ = b.Buffer.Write(p[:keep])
	return len(p), nil
}
