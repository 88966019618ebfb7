package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/hosting/transcript"
)

// Targets for the transcript of a hosted session.
const (
	maxStored  = 1.0 / 20 // of what the seed takes for a message
	maxVisible = 20 * time.Millisecond
)

// seedScript is the seed's store. Its library must be where node finds it, see
// NODE_PATH; without it the same statements are made here, with our library.
const seedScript = "internal/bench/testdata/seed-transcript.js"

// measureTranscript stores messages where a transcript has a thousand already.
func measureTranscript(b *bench) (table, error) {
	t := table{
		title:  "A message of a hosted session",
		header: []string{fmt.Sprintf("message %d and after, 2 KB each", b.plan.before), "mean", "median", "worst"},
	}
	dir, err := b.folder("transcript")
	if err != nil {
		return t, err
	}
	first, count := b.plan.before, b.plan.stored
	lines := filepath.Join(dir, "lines")
	if err := os.WriteFile(lines, conversation(first-1+count), 0o600); err != nil {
		return t, err
	}
	seed, by, err := seedStores(b.ctx, filepath.Join(dir, "seed.db"), lines, first)
	if err != nil {
		return t, err
	}
	ours, err := weStore(b.ctx, dir, lines, first)
	if err != nil {
		return t, err
	}
	row := func(name string, s sample) {
		t.add(name, ms(s.sum()/time.Duration(len(s))), ms(s.median()), ms(s.max()))
	}
	t.how = fmt.Sprintf("%d messages, one after the other, each awaited. The seed: %s.", count, by)
	row("the seed, from the line to its commit", seed)
	row("ours, from the line to its commit", ours.stored)
	row("ours, from the line until the session goes on", ours.appended)
	row("ours, from the line to a reader that follows", ours.seen)
	t.add("ours, the guild's row at the end", ms(ours.row), "", "")
	cost := float64(ours.stored.sum()) / float64(seed.sum())
	t.result = fmt.Sprintf("A message takes %.3f of the seed's time (target %.2f): %s. The worst reader waits %s (target %v): %s.",
		cost, maxStored, met(cost <= maxStored), ms(ours.seen.max()), maxVisible, met(ours.seen.max() <= maxVisible))
	return t, nil
}

// conversation is n lines as the client prints them, in turn an answer and a tool's
// result.
func conversation(n int) []byte {
	var b bytes.Buffer
	text := strings.Repeat("some text of a message, \\\"quoted\\\" and \\n so on; ", 36)
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"type":"assistant","message":{"id":"msg_%d","role":"assistant","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":12,"output_tokens":345}},"session_id":"5b1d2c1e"}`, i, text)
		} else {
			fmt.Fprintf(&b, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]},"session_id":"5b1d2c1e"}`, i, text)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// seedStores is how long the seed takes for each message from a number on, and who
// stood for it.
func seedStores(ctx context.Context, db, lines string, from int) (sample, string, error) {
	out, err := exec.CommandContext(ctx, "node", seedScript, db, lines, fmt.Sprint(from)).Output()
	if err == nil {
		var took sample
		return took, "`node` with better-sqlite3", json.Unmarshal(out, &took)
	}
	var exit *exec.ExitError
	if !errors.Is(err, exec.ErrNotFound) && !(errors.As(err, &exit) && bytes.Contains(exit.Stderr, []byte("Cannot find module"))) {
		return nil, "", fmt.Errorf("%s: %w", seedScript, err)
	}
	took, err := seedInGo(ctx, db, lines, from)
	return took, "its statements with our library, since node has no better-sqlite3 here", err
}

// ourTimes are how long our store takes.
type ourTimes struct {
	stored   sample // from the line until it is committed
	appended sample // from the line until the session goes on
	seen     sample // from the line until a reader has it
	row      time.Duration
}

func weStore(ctx context.Context, dir, lines string, from int) (times ourTimes, err error) {
	f, err := os.Open(lines)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s := transcript.Open(transcript.Options{DB: filepath.Join(dir, "ours.db"), Spool: filepath.Join(dir, "spool"), SessionID: "ses-1"})
	seen := make(chan time.Time, 1)
	go func() {
		for range s.Read(ctx, int64(from)) {
			seen <- time.Now()
		}
	}()
	r := stream.NewReader(f, nil)
	for {
		start := time.Now()
		m, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return times, err
		}
		n := s.Append(m)
		appended := time.Since(start)
		for s.Stored() < n {
			time.Sleep(10 * time.Microsecond)
		}
		if stored := time.Since(start); n >= int64(from) {
			times.stored = append(times.stored, stored)
			times.appended = append(times.appended, appended)
			times.seen = append(times.seen, (<-seen).Sub(start))
		}
	}
	start := time.Now()
	err = s.Close(ctx)
	times.row = time.Since(start)
	return times, err
}
