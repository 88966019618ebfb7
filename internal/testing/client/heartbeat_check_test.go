package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"heartbeat/inbox"
	"heartbeat/internal/testing/model"
)

// line is what these tests read in .results.jsonl, .dead-letter.jsonl and
// .in-flight. They read the documented files rather than ask the library.
type line struct {
	EntryID     string    `json:"entry_id"`
	ID          string    `json:"id"`
	StartOffset int       `json:"start_offset"`
	RawLine     string    `json:"raw_line"`
	Attempt     int       `json:"attempt"`
	Attempts    int       `json:"attempts"`
	SessionID   string    `json:"session_id"`
	PromptID    string    `json:"prompt_id"`
	Prompt      string    `json:"prompt"`
	Reply       string    `json:"reply"`
	Reason      string    `json:"reason"`
	DeliveredAt time.Time `json:"delivered_at"`
	Failure     *struct {
		Error string `json:"error"`
	} `json:"failure"`
	Check *inbox.Check `json:"check"`
}

func (r *rig) path(name string) string { return filepath.Join(filepath.Dir(r.inbox), name) }

// inFlight is replaced as a whole, and has no newline.
const inFlight = ".in-flight"

func (r *rig) lines(name string) []line {
	r.t.Helper()
	raw, err := os.ReadFile(r.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(r.t, err)
	var all []line
	for one := range bytes.Lines(raw) {
		if name != inFlight && !bytes.HasSuffix(one, []byte("\n")) {
			break // it is being appended
		}
		var l line
		require.NoError(r.t, json.Unmarshal(one, &l), "%s: %s", name, one)
		all = append(all, l)
	}
	return all
}

func (r *rig) results() []line     { return r.lines(".results.jsonl") }
func (r *rig) deadLetters() []line { return r.lines(".dead-letter.jsonl") }

// flying returns the entry in flight, or nil.
func (r *rig) flying() *line {
	if all := r.lines(inFlight); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// state returns what is needed to understand a failed test.
func (r *rig) state() string {
	var b strings.Builder
	for _, name := range []string{".inbox-offset", ".in-flight", ".results.jsonl", ".dead-letter.jsonl"} {
		raw, err := os.ReadFile(r.path(name))
		fmt.Fprintf(&b, "--- %s (%v)\n%s\n", name, err, raw)
	}
	for _, request := range r.Model.MainRequests() {
		fmt.Fprintf(&b, "--- request %d: %.300q\n", request.Number, request.UserText)
	}
	return b.String()
}

// tagOf finds an entry by its name in the state files.
func (r *rig) tagOf(entryID string) string {
	for _, e := range r.entries {
		if sum := sha256.Sum256([]byte(e.line)); hex.EncodeToString(sum[:]) == entryID {
			return e.tag
		}
	}
	return "unknown entry " + entryID
}

// fate is the expected result of one entry: how often the model gets its text, and the
// reply, or the reason why there is none.
type fate struct {
	entry
	arrivals int
	attempt  int
	reply    string
	reason   string
}

// answeredOnce is every entry's fate when nothing goes wrong.
func answeredOnce(all ...entry) []fate {
	var list []fate
	for _, e := range all {
		list = append(list, fate{entry: e, arrivals: 1, attempt: 1, reply: ownReply(e.tag)})
	}
	return list
}

// settled checks that every entry had its fate and nothing else happened: results and
// dead letters in order, nothing in flight, the cursor at the end, and what the model
// got.
func (r *rig) settled(fates ...fate) {
	r.t.Helper()
	r.logged(fates...)
	assert.NoFileExists(r.t, r.path(".in-flight"))
	assert.NoFileExists(r.t, r.path(".responded"))
	cursor, err := os.ReadFile(r.path(".inbox-offset"))
	require.NoError(r.t, err)
	info, err := os.Stat(r.inbox)
	require.NoError(r.t, err)
	assert.Equal(r.t, fmt.Sprint(info.Size()), strings.TrimSpace(string(cursor)))
}

// logged is settled for a session that continues.
func (r *rig) logged(fates ...fate) {
	r.t.Helper()
	r.had(r.arrivals, fates...)
}

// had checks the fates, and how often the model got each text.
func (r *rig) had(arrivals func(text string) int, fates ...fate) {
	r.t.Helper()
	var results, dead []string
	for _, f := range fates {
		switch {
		case f.reply != "":
			results = append(results, told(f.tag, f.id, f.attempt, f.reply))
		case f.reason != "":
			dead = append(dead, told(f.tag, f.id, f.attempt, f.reason))
		}
		assert.Equal(r.t, f.arrivals, arrivals(f.text), "how often the model got %s", f.tag)
	}
	assert.Equal(r.t, results, r.told(r.results()), "results")
	assert.Equal(r.t, dead, r.told(r.deadLetters()), "dead letters")
	if r.t.Failed() {
		r.t.Log(r.state())
	}
}

func told(tag, id string, attempt int, words string) string {
	return fmt.Sprintf("%s id %q, attempt %d: %s", tag, id, attempt, words)
}

func (r *rig) told(lines []line) []string {
	var all []string
	for _, l := range lines {
		all = append(all, told(r.tagOf(l.EntryID), l.ID, l.Attempt+l.Attempts, l.Reply+l.Reason))
	}
	return all
}

// arrivals counts how often the model got a text, that is, how often a conversation grew by
// it. A conversation repeats everything before, and a new session starts another one.
func (r *rig) arrivals(text string) int {
	r.t.Helper()
	total, before := 0, map[string]int{}
	for _, request := range r.Model.MainRequests() {
		session := sessionOf(request)
		now := r.said(request, text)
		total += max(0, now-before[session])
		before[session] = now
	}
	return total
}

// sessionOf is the session that a request is of. The rest of what tells it may change while several
// clients share a home.
func sessionOf(request model.Request) string {
	return gjson.Get(gjson.GetBytes(request.Body, "metadata.user_id").String(), "session_id").String()
}

// turns counts how often the model was asked.
func (r *rig) turns() int { return len(r.Model.MainRequests()) }

// said counts how often a text is in the messages of a request.
func (r *rig) said(request model.Request, text string) int {
	r.t.Helper()
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	require.NoError(r.t, json.Unmarshal(request.Body, &body))
	n := 0
	for _, message := range body.Messages {
		if message.Role == "user" { // a block is repeated in a message to the system
			n += count(message.Content, text)
		}
	}
	return n
}

// count counts how often a text is in the strings of a JSON value.
func count(v any, text string) (n int) {
	switch v := v.(type) {
	case string:
		return strings.Count(v, text)
	case []any:
		for _, one := range v {
			n += count(one, text)
		}
	case map[string]any:
		for _, one := range v {
			n += count(one, text)
		}
	}
	return n
}

// transcripts are the client's records of all its sessions.
func (r *rig) transcripts() []byte {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.Home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(r.t, err)
	var all []byte
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(r.t, err)
		all = append(all, raw...)
	}
	return all
}

// transcribed reports whether a transcript has some text.
func (r *rig) transcribed(text string) bool { return bytes.Contains(r.transcripts(), []byte(text)) }
