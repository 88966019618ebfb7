package hosting

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

var attachVerb = cli.Verb{
	Name:  "attach",
	Args:  "ID",
	IDs:   sessionIDs,
	Short: "print a session's messages, and later ones as they arrive",
	Long: `Print the messages of a session from a number on, each once and in order, and later
ones as they arrive, until the session has ended. A slow reader does not delay the
session. With --json a message is {"n":1,"at":"...","type":"assistant","content":{...}},
where content is what the client wrote, and otherwise one line with the beginning of its
text. To continue later, pass the next number with --from.

` + whichID + `

Exit status: 0 the session has ended and all was printed; 1 not: there is no such
session, or more than one, or its messages cannot be read; 128+n signal n ended
it.`,
	Example: `heartbeat-host attach ses-1
heartbeat-host attach ses-1 --from 120 --json | jq -c .content`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		var from int64
		o.add(f)
		f.Int64Var(&from, "from", 1, "begin with the message of this `number`")
		program.AddColor(f, &o.Color)
		return o.action(f, func(h *hosted, s cli.Streams) error { return h.follow(from, printerOf(&o, s), s) }, func() error {
			if from < 1 {
				return fmt.Errorf("--from is %d: messages are numbered from 1", from)
			}
			return nil
		})
	},
}

func (h *hosted) follow(from int64, show func(stream.Stored) error, s cli.Streams) error {
	return untilSignal(func(ctx context.Context) (left error) {
		for m, err := range h.messages(ctx, from, func() bool { left = s.ReaderGone(); return left == nil }) {
			if err == nil {
				err = show(m)
			}
			if err != nil {
				return err
			}
		}
		return left
	})
}

// messages yields the session's messages from a number on: with follow later ones until the end or until it is false.
func (h *hosted) messages(ctx context.Context, from int64, follow func() bool) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		db := store.In(folder.Root(h.DB), "")
		defer db.Close() // only read
		over := func() (last int64, over bool) {
			if follow != nil {
				v, err := h.ViewIn(db)
				if over = err != nil; !over {
					*h = hosted{View: v}
				}
			}
			if h.Status.Ended() {
				return h.State.Messages, true
			}
			return 0, over || follow == nil || h.Host == 0 || !follow()
		}
		if err := h.TakeOver(ctx); err != nil {
			yield(stream.Stored{}, err)
			return
		}
		o := stream.TranscriptOptions{DB: db, Guild: h.DB, SessionID: h.ID}
		for m, err := range stream.ReadTranscript(ctx, o, from, over) {
			if err != nil {
				err = fmt.Errorf("read the messages of session %s from %d on: %w", h.ID, from, err)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func printerOf(o *oneFlags, s cli.Streams) func(stream.Stored) error {
	if o.JSON {
		return func(m stream.Stored) error { return cli.PrintJSON(s.Out, m) }
	}
	shown := layout.For(s.Out, o.Color)
	t := layout.NewTable(
		layout.Column{Title: "TIME", Least: len(time.TimeOnly)}, layout.Column{Title: "N", Right: true, Least: 4},
		layout.Column{Title: "TYPE", Least: len("assistant")}, layout.Column{Title: "TEXT", Text: true, Least: 24},
	)
	return func(m stream.Stored) error {
		at := m.At.UTC().Format(time.RFC3339Nano)
		if shown.ForPeople() {
			at = m.At.Local().Format(time.TimeOnly)
		}
		line := flat.Value(m.Content)
		parts := []string{line.Get("subtype").Text(), line.Get("error").Text(), line.Get("result").Text()}
		parts = append(parts, contents(line.Get("message", "content"))...)
		text := words.Brief(strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
		t.AddLine(at, strconv.FormatInt(m.N, 10), m.Type, text)
		return shown.Table(t)
	}
}

// contents returns the texts of a message's content, which is one text or a list of blocks.
func contents(v flat.Value) (parts []string) {
	if v.IsString() {
		return []string{v.Text()}
	}
	for _, b := range v.Items() {
		switch b.Get("type").Text() {
		case "text":
			parts = append(parts, b.Get("text").Text())
		case "thinking":
			parts = append(parts, "(thinking)", b.Get("thinking").Text())
		case "tool_use":
			parts = append(parts, strings.TrimSpace("calls "+b.Get("name").Text()+" "+string(b.Get("input"))))
		case "tool_result":
			answer := "tool answers:"
			if b.Get("is_error") == "true" {
				answer = "tool fails:"
			}
			parts = append(append(parts, answer), contents(b.Get("content"))...)
		}
	}
	return parts
}
