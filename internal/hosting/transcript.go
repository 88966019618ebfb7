package hosting

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

var transcriptVerb = cli.Verb{
	Name:  "transcript",
	Args:  "ID",
	IDs:   sessionIDs,
	Short: "print a session's conversation, also once gc has removed the rest",
	Long: `Print the conversation of a session, up to now if it is running: the messages of
the assistant and of the user, one JSON object a line, as the client spelled them, or
with --text for people. If the babysitter of shardworks hosted the session, the messages
are read from the guild's own table, in --db or in all databases beside which this user
has hosted sessions.

` + whichID + `

Exit status: 0 printed; 1 not: there is no such session, or more than one, or its
database cannot be read.`,
	Example: `heartbeat-host transcript ses-1 > ses-1.jsonl
heartbeat-host transcript ses-1 --text --db .nexus/nexus.db | less`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		var text bool
		o.add(f)
		f.BoolVar(&text, "text", false, "print it for people")
		return actionOf(f, o.parse(func() error {
			if text && o.JSON {
				return errors.New("--text and --json are two forms of the same: leave one out")
			}
			return nil
		}), func(s cli.Streams) error {
			return untilSignal(func(ctx context.Context) error { return export(ctx, &o, text, s) })
		})
	},
}

func export(ctx context.Context, o *oneFlags, text bool, s cli.Streams) error {
	h, err := locate(ctx, o)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.Out)
	lost := 0
	for m, err := range h.soFar(ctx) {
		switch {
		case err != nil:
			err = fmt.Errorf("read the transcript of session %s: %w", h.ID, err)
		case m.Type == stream.TypeHost:
			lost++
		case m.Type != "assistant" && m.Type != "user": // not of the conversation
		case text:
			_, err = out.WriteString(inFull(m))
		default:
			_, err = fmt.Fprintf(out, "%s\n", m.Content)
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	if lost > 0 {
		s.Note("%s could not be kept, and may have been part of it", words.Count(lost, "message of the session", "messages of the session"))
	}
	return out.Flush()
}

func inFull(m stream.Stored) string {
	head := m.Type
	if !m.At.IsZero() {
		head += "  " + words.Stamp(m.At)
	}
	text := strings.Join(contents(flat.Value(m.Content).Get("message", "content")), "\n")
	return words.Plain(head+"\n"+strings.TrimRight(text, "\n")) + "\n\n"
}

// locate returns the session that the flags name. A session without a folder has no state.
func locate(ctx context.Context, o *oneFlags) (*hosted, error) {
	named, problems := sessions(&o.shownFlags, o.ID)
	if slices.ContainsFunc(named, func(h *hosted) bool { return h.ID == o.ID }) {
		return pick(named, o.ID, problems)
	}
	dbs, _ := databases(&o.shownFlags) // sessions has returned the problems
	for _, db := range dbs {
		host := store.In(folder.Root(db), "")
		kept, err := host.WithPrefix(ctx, o.ID)
		problems = errors.Join(problems, err, host.Close())
		var ids []string
		for _, s := range kept {
			if f, err := folder.At(db, s.ID); err == nil && f.DB == s.GuildDB {
				ids = append(ids, s.ID)
			}
		}
		rows, err := store.Rows(ctx, db, o.ID)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
			if o.DB != "" && len(ids) == 0 {
				err = fmt.Errorf("there is no database %s", o.DB)
			}
		}
		problems = errors.Join(problems, err)
		for _, id := range append(ids, rows...) {
			f, err := folder.At(db, id)
			if err == nil && !slices.ContainsFunc(named, func(h *hosted) bool { return h.Folder == f }) {
				named = append(named, &hosted{View: folder.View{Folder: f}})
			}
		}
	}
	if len(named) == 0 && problems == nil && o.DB == "" {
		return nil, fmt.Errorf("no session is called %q in the databases of this user's sessions: name another database with --db", o.ID)
	}
	return pick(named, o.ID, problems)
}

// soFar yields the session's present messages: from the guild's table, if it was not hosted here.
func (h *hosted) soFar(ctx context.Context) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		kept := false
		for m, err := range h.messages(ctx, 1, nil) {
			if kept = true; !yield(m, err) || err != nil {
				return
			}
		}
		if kept || h.State != nil {
			return
		}
		row, err := store.Row(ctx, h.DB, h.ID)
		for i, raw := range row {
			m, is := stream.Parse(raw) // these have no time
			if is && !yield(stream.Stored{N: int64(i) + 1, Type: m.Type, Content: m.Raw}, nil) {
				return
			}
		}
		if err != nil {
			yield(stream.Stored{}, err)
		}
	}
}
