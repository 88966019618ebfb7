package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/consumer"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary also a consumer that can be killed, and its guardian.
func TestMain(m *testing.M) {
	script.Main(m, map[string]func(){
		"consume":     consume,
		guardian.Name: guardian.Serve,
	})
}

// consume is a consumer of the inbox that its first argument names: a name and a command follow.
func consume() {
	guardian.Serve()
	box, err := inbox.Open(os.Args[1], inbox.Options{})
	if err == nil {
		_, err = consumer.Run(context.Background(), box, consumer.Options{
			Name: os.Args[2], Command: os.Args[3], Flag: "--exec", Dir: box.Dir(), Patience: time.Minute, TimeLimit: time.Minute,
			Note: func(text string) { fmt.Fprintln(os.Stderr, text) },
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rig is an inbox with a folder for what a command writes.
type rig struct {
	testing.TB
	box *inbox.Inbox
	dir string

	mu    sync.Mutex
	notes []string
}

func newRig(t testing.TB) *rig {
	dir := t.TempDir()
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	return &rig{TB: t, box: box, dir: dir}
}

// settle appends an entry, delivers it, and answers it or sets it aside.
func (r *rig) settle(line string, how func(*inbox.Tx) error) {
	r.Helper()
	f, err := os.OpenFile(r.box.Path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r, err)
	_, err = io.WriteString(f, line+"\n")
	require.NoError(r, err)
	require.NoError(r, f.Close())
	tx, err := r.box.Begin(r.Context())
	require.NoError(r, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(r, err)
	_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	require.NoError(r, err)
	require.NoError(r, tx.Commit())
	require.NoError(r, how(tx))
	require.NoError(r, tx.Commit())
	require.NoError(r, tx.Close())
}

func (r *rig) answer(line string) {
	r.Helper()
	r.settle(line, func(tx *inbox.Tx) error { return tx.Acknowledge("did it") })
}

func (r *rig) setAside(line string) {
	r.Helper()
	r.settle(line, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
}

// known has a consumer of that name begin here.
func (r *rig) known(name string) {
	r.Helper()
	c, err := outcomes.Consume(r.Context(), r.box, name, false, 0)
	require.NoError(r, err)
	require.NoError(r, c.Close())
}

// options are those of a consumer with that command.
func (r *rig) options(command string) consumer.Options {
	return consumer.Options{
		Name: "mail", Command: command, Flag: "--exec", Dir: r.dir, Patience: 0, TimeLimit: time.Minute, Wait: time.Nanosecond,
		Note: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, text)
		},
	}
}

// said are the notes so far.
func (r *rig) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.notes, "\n")
}

func (r *rig) state() outcomes.Consumer {
	r.Helper()
	all, err := outcomes.Consumers(r.box)
	require.NoError(r, err)
	require.NotEmpty(r, all)
	return all[0]
}

// log appends a line for each that is taken.
const log = `printf '%s %s %s\n' "$HEARTBEAT_KEY" "$HEARTBEAT_KIND" "$HEARTBEAT_ID" >>log`

// logged are the lines of the log, without the keys.
func (r *rig) logged() (all []string, keys []string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	require.NoError(r, err)
	for line := range strings.Lines(string(text)) {
		key, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all, keys = append(all, rest), append(keys, key)
	}
	return all, keys
}

// What is there is handed over in the order of the commits, once.
func TestHandsOver(t *testing.T) {
	r := newRig(t)
	r.answer(`{"id":"a","prompt":"x","pr":"17","n":3,"yes":true,"deep":{"x":1},"none":null,"bad name":"x","two":"a\nb","long":"` + strings.Repeat("x", 2000) + `"}`)
	r.setAside(`{"id":"b","prompt":"x"}`)
	r.answer(`{"id":"c","prompt":"x"}`)
	t.Setenv("HEARTBEAT_META_left", "over")
	t.Setenv("ANTHROPIC_API_KEY", "key-of-the-agent")
	n, err := consumer.Run(t.Context(), r.box, r.options(log+"; cat >>objects; env >>env"))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	said, keys := r.logged()
	assert.Equal(t, []string{"result a", "dead_letter b", "result c"}, said)
	assert.Len(t, map[string]bool{keys[0]: true, keys[1]: true, keys[2]: true}, 3)

	env, err := os.ReadFile(filepath.Join(r.dir, "env"))
	require.NoError(t, err)
	var metas []string
	for line := range strings.Lines(string(env)) {
		if strings.HasPrefix(line, "HEARTBEAT_META_") {
			metas = append(metas, strings.TrimSpace(line))
		}
	}
	assert.ElementsMatch(t, []string{"HEARTBEAT_META_pr=17", "HEARTBEAT_META_n=3", "HEARTBEAT_META_yes=true"}, metas)
	assert.NotContains(t, string(env), "key-of-the-agent")

	objects, err := os.ReadFile(filepath.Join(r.dir, "objects"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(objects)), "\n")
	require.Len(t, lines, 3)
	var o outcomes.Handover
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &o))
	assert.Equal(t, []string{"result", keys[0], "mail", r.box.Path(), "a"}, []string{o.Kind, o.Key, o.Consumer, o.Inbox, o.ID})
	assert.JSONEq(t, `{"x":1}`, string(o.Metadata["deep"]))
	results, err := os.ReadFile(r.box.ResultsPath())
	require.NoError(t, err)
	assert.Equal(t, strings.SplitN(string(results), "\n", 2)[0], string(o.Line))

	n, err = consumer.Run(t.Context(), r.box, r.options(log))
	require.NoError(t, err)
	assert.Zero(t, n)
	o2 := r.options(log)
	o2.Name = "chat"
	n, err = consumer.Run(t.Context(), r.box, o2)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	_, again := r.logged()
	assert.Equal(t, keys, again[3:], "the key is of the entry's commit")
}
