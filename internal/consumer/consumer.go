// Package consumer hands each result and each dead letter of an inbox to a command, in the order of their commits, and
// the next one only after the command has succeeded.
//
// The inbox's file with the consumer's name says how far it has come, and is written after each success. A kill before
// that has the same one handed over again, with the same key, and no other.
//
// The command line comes from a flag and never from a file or an entry, which an agent's tools may be able to write.
package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

// Options are what a consumer does.
type Options struct {
	Name    string `json:"name"`
	Command string `json:"command"` // for /bin/sh, from a flag
	Flag    string `json:"flag"`    // the name of that flag, for sentences
	Dir     string `json:"dir"`     // where the command runs
	Fresh   bool   `json:"fresh"`   // has a new consumer leave out what is there already
	Follow  bool   `json:"follow"`  // has Run wait for more until End is closed, and retry for as long as it takes
	// Patience is how long the command may fail before a person is told, and without Follow, before Run gives up.
	Patience  time.Duration `json:"patience"`
	TimeLimit time.Duration `json:"time_limit"` // how long the command may take
	// Wait is how long to wait for another process of this name, 0 for as long as it takes.
	Wait time.Duration `json:"wait"`

	End  <-chan struct{}   `json:"-"` // nil for never
	Note func(text string) `json:"-"` // gets sentences about what does not work
}

// The usual lengths of time.
const (
	Patience  = 10 * time.Minute
	TimeLimit = 10 * time.Minute
)

const (
	// firstPause is the pause after a first failure. It doubles up to lastPause.
	firstPause, lastPause = time.Second, 5 * time.Minute
	poll                  = time.Second // how often to check an inbox that gives no file events
	endTime               = time.Minute // for how long after End is closed the rest is handed over
	// maxVariables is how many members of the metadata become variables; maxVariable is the longest value, in bytes.
	maxVariables, maxVariable = 64, 1 << 10
)

// Run hands over what is there, and with Follow what comes later. It returns how many it handed over.
func Run(ctx context.Context, box *inbox.Inbox, o Options) (handed int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.End != nil {
		go func() {
			select {
			case <-o.End:
				time.AfterFunc(endTime, func() { cancel(errEnd) })
			case <-ctx.Done():
			}
		}()
	}
	news := box.WatchOutcomes(poll)
	defer func() { _ = news.Close() }() // it only reads
	c, err := outcomes.Consume(ctx, box, o.Name, o.Fresh, o.Wait)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := &run{Options: o, ctx: ctx, consuming: c, news: news.C}

	// First kill what an earlier process left. What the command starts dies if this process is killed.
	const begins = "heartbeat-consumer-"
	if strings.HasPrefix(c.Left, begins) { // not a session's mark, which others may write there
		guardian.Kill(c.Left)
	}
	r.mark = begins + o.Name + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := c.Mark(r.mark); err != nil {
		r.say(fmt.Sprintf("the command may outlive this process where that is killed: %v", err))
	}
	guard, _ := guardian.Post(r.mark, nil, guardian.Then{}) // without a guard, the next consumer kills what is left
	defer guard.Dismiss()
	err = r.work()
	return r.handed, err
}

var errEnd = errors.New("the time for what is left is over")

type run struct {
	Options
	ctx       context.Context
	consuming *outcomes.Consuming
	news      <-chan struct{}
	mark      string
	handed    int
	said      string // the last sentence
}

func (r *run) work() error {
	for fails := 0; ; {
		h, err := r.consuming.Next()
		for _, note := range r.consuming.Notes() {
			r.say(note)
		}
		switch {
		case err == nil && h != nil:
			if err := r.handOver(h); err != nil {
				return err
			}
			fails = 0
			r.handed++
		case err == nil && (!r.Follow || r.ended()):
			return nil
		case err == nil:
			if err := r.wait(r.news, nil); err != nil {
				return err
			}
		case machine.Passes(err) && r.Follow && !r.ended():
			r.say(err.Error())
			if err := r.wait(nil, time.After(pause(fails))); err != nil {
				return err
			}
			fails++
		default:
			return err
		}
	}
}

// handOver runs the command until it has taken h or no more tries are allowed.
func (r *run) handOver(h *outcomes.Handover) error {
	var input bytes.Buffer // one line of JSON
	enc := json.NewEncoder(&input)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return fmt.Errorf("spell what is handed over of %s: %w", words.Name(h.ID, h.EntryID), err)
	}
	shell := notify.Shell{
		Line: r.Command, Flag: r.Flag, Dir: r.Dir, Limit: r.TimeLimit, Input: input.Bytes(),
		Env: guardian.Marked(append(environment(h), guardian.Variable+"="+os.Getenv(guardian.Variable)), r.mark),
	}
	begun := time.Now()
	for fails := 0; ; fails++ {
		err := shell.Run(r.ctx)
		if err == nil {
			return r.done()
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx) // it was killed, and did not fail
		}
		guardian.Kill(r.mark) // leftovers would meet the next try
		err = fmt.Errorf("hand over the %s of %s: %w", strings.ReplaceAll(h.Kind, "_", " "), words.Name(h.ID, h.EntryID), err)
		if noted := r.consuming.Failed(err, r.Patience); noted != nil {
			r.say(noted.Error())
		}
		if r.ended() || !r.Follow && time.Since(begun) >= r.Patience {
			return err
		}
		rest := pause(fails)
		if !r.Follow {
			rest = min(rest, max(0, r.Patience-time.Since(begun)))
		}
		r.say(fmt.Sprintf("%v: it is tried again", err))
		if err := r.wait(nil, time.After(rest)); err != nil {
			return err
		}
	}
}

// done records that the command has taken one. Nothing else is handed over until that succeeds, or a kill would have
// more than one repeated.
func (r *run) done() error {
	err := r.consuming.Done()
	for fails := 0; err != nil; fails++ {
		if !r.Follow || r.ended() || errors.Is(err, outcomes.ErrConsumerGone) {
			return err
		}
		r.say(fmt.Sprintf("%v: make that possible, it is tried again", err))
		if err := r.wait(nil, time.After(pause(fails))); err != nil {
			return err
		}
		err = r.consuming.Save()
	}
	r.said = ""
	return nil
}

// say notes a sentence unless it was the last one.
func (r *run) say(text string) {
	if text != r.said {
		r.said = text
		r.Note(words.Sentence(text))
	}
}

// wait returns at the first of these events, or once End is closed. The error says why the work must stop.
func (r *run) wait(news <-chan struct{}, due <-chan time.Time) error {
	select {
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	case <-r.End:
	case <-news:
	case <-due:
	}
	return nil
}

// ended reports whether End is closed: each of the rest is tried once.
func (r *run) ended() bool {
	select {
	case <-r.End:
		return true
	default:
		return false
	}
}

func pause(fails int) time.Duration { return min(lastPause, firstPause<<min(fails, 10)) }

// Here returns the options for a command that runs in the current folder.
func Here(o Options) (_ Options, err error) {
	if o.Dir, err = filepath.Abs("."); err != nil {
		return o, fmt.Errorf("determine the folder for the command of %s: %w", o.Flag, err)
	}
	return o, nil
}

// variableName matches the names of metadata that become variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// environment returns variables for a script that cannot read JSON. A value that does not fit is left out: shortened, an
// address would be another one.
func environment(h *outcomes.Handover) []string {
	env := []string{
		"HEARTBEAT_KEY=" + h.Key, "HEARTBEAT_KIND=" + h.Kind, "HEARTBEAT_CONSUMER=" + h.Consumer,
		"HEARTBEAT_INBOX=" + fit(h.Inbox), "HEARTBEAT_ID=" + fit(h.ID), "HEARTBEAT_ENTRY_ID=" + fit(h.EntryID),
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(h.Metadata)) {
		value, is := scalar(h.Metadata[name])
		if is && n < maxVariables && variableName.MatchString(name) && value != "" && fit(value) == value {
			env = append(env, "HEARTBEAT_META_"+name+"="+value)
			n++
		}
	}
	return env
}

// scalar returns a metadata value that is a text, a number, true or false as text.
func scalar(raw json.RawMessage) (text string, is bool) {
	if json.Unmarshal(raw, &text) == nil && !bytes.Equal(raw, []byte("null")) {
		return text, true
	}
	text = strings.TrimSpace(string(raw))
	return text, text != "" && text != "null" && text[0] != '{' && text[0] != '['
}

// fit returns s if it is one short line without control characters, else "".
func fit(s string) string {
	if len(s) > maxVariable || !utf8.ValidString(s) || words.Line(s) != s || strings.ContainsRune(s, 0) {
		return ""
	}
	return s
}
