package hosting

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/transcript"
	"heartbeat/internal/hosting/verbs"
)

// follow prints a session's messages until it has ended.
func follow(o *verbs.Attach, s cli.Streams) error {
	h, err := find(&o.Look)
	if err != nil {
		return err
	}
	ctx, stop, status := untilSignal()
	defer stop()
	show := printerOf(o, s)
	for m, err := range h.messages(ctx, o.From) {
		if err == nil {
			err = show(m)
		}
		if err != nil {
			return status(err)
		}
	}
	return status(nil)
}

// messages yields the session's messages from a number on, from its host while that
// lives, and then from the database.
func (h *hosted) messages(ctx context.Context, from int64) iter.Seq2[attach.Message, error] {
	return func(yield func(attach.Message, error) bool) {
		next := from
		for m, err := range (attach.Host{Folder: h.Dir()}).Messages(ctx, from) {
			if errors.Is(err, attach.ErrNotRunning) {
				h.stored(ctx, next, yield)
				return
			}
			next = m.N + 1
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// stored yields the messages that are kept, from a number on.
func (h *hosted) stored(ctx context.Context, from int64, yield func(attach.Message, error) bool) {
	o := transcript.Options{DB: h.DB, Spool: h.SpoolPath(), SessionID: h.ID}
	for m, err := range transcript.ReadEnded(ctx, o, from) {
		if err != nil {
			err = fmt.Errorf("read the messages of session %s from %d on: %w", h.ID, from, err)
		}
		if !yield(attach.Message{N: m.N, At: m.At, Type: m.Type, Raw: m.Content}, err) || err != nil {
			return
		}
	}
}

// printerOf returns what prints a message.
func printerOf(o *verbs.Attach, s cli.Streams) func(attach.Message) error {
	if o.JSON {
		out := bufio.NewWriter(s.Out)
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return func(m attach.Message) error {
			return errors.Join(enc.Encode(m), out.Flush())
		}
	}
	shown := layout.For(s.Out, o.Color)
	t := layout.NewTable(
		layout.Column{Title: "TIME", Least: len(time.TimeOnly)}, layout.Column{Title: "N", Right: true, Least: 4},
		layout.Column{Title: "TYPE", Least: len("assistant")}, layout.Column{Title: "TEXT", Text: true, Least: 24},
	)
	return func(m attach.Message) error {
		at := m.At.UTC().Format(time.RFC3339Nano)
		if shown.ForPeople() {
			at = m.At.Local().Format(time.TimeOnly)
		}
		t.AddLine(at, strconv.FormatInt(m.N, 10), m.Type, excerpt(m))
		return shown.Table(t)
	}
}
