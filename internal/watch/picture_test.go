package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
)

// pictureVariable names the file in which TestPicture leaves its recording. With it keys
// and answers take the time that a person and a session take.
const pictureVariable = "HEARTBEAT_PICTURE"

// agents are folders with inboxes, whose sessions are made up.
type agents struct {
	t     *testing.T
	root  string
	box   map[string]*inbox.Inbox
	asked int // requests of all
}

const shellPrompt = "~ $ "

// The view of the README's second picture: four inboxes, of which one is paused and one
// has a dead letter, while entries are answered.
func TestPicture(t *testing.T) {
	cast, root, key, pause := filepath.Join(t.TempDir(), "watch.cast"), t.TempDir(), time.Duration(0), time.Duration(0)
	if path := os.Getenv(pictureVariable); path != "" {
		cast, root, key, pause = path, filepath.Join(os.TempDir(), "agents"), 60*time.Millisecond, 1500*time.Millisecond
		require.NoError(t, os.Mkdir(root, 0o700)) // a path that names no machine
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(root)) })
	}
	a := &agents{t, root, map[string]*inbox.Inbox{}, 0}
	a.fill()
	s := sit(t, "heartbeat-launch", "--record", cast, "--grace", "1s", "--", "sh", "-i")
	s.Cmd.Dir = filepath.Dir(root)
	s.Cmd.Env = append(s.Cmd.Env, "PS1="+shellPrompt, "LANG=C.UTF-8", "NO_COLOR=", "TERM=xterm-256color")
	s.Start()
	s.Prints(shellPrompt)
	enter := func(keys string, sees ...string) {
		t.Helper()
		for _, k := range keys {
			s.Types(string(k))
			time.Sleep(key)
		}
		s.Sees(sees...)
		time.Sleep(pause)
	}
	enter("heartbeat watch "+filepath.Base(root)+"\r", "4 inboxes", "> mail")
	a.answer("mail", "Filed under suppliers; nothing to pay.")
	s.Sees("answering", "0.03 USD today")
	time.Sleep(pause)
	a.answer("triage", "A duplicate of #41: closed with a note.")
	time.Sleep(pause)
	enter("j", "> releases", "delivery is paused")
	enter("r", "resume delivery in releases? y/n")
	enter("y", "delivery goes on")
	enter("\r", "> waits", "dead letter")
	enter("G", "> dead letter  v2.3")
	enter("u", "put v2.3 back into the inbox? y/n")
	enter("y", "requeued")
	s.Types("\x1b")
	s.Sees("4 inboxes")
	enter("k", "> mail")
	a.answer("mail", "Thanked them, and asked for a date in June.")
	enter("\r", "answered")
	enter("G")
	enter("k\r", "REPLY", "Thanked them", "cost: ")
	time.Sleep(pause)
	s.Printed = ""
	s.Types("q")
	s.Prints(shellPrompt)
	require.NoError(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	over := make(chan struct{})
	go func() { _ = s.Cmd.Wait(); close(over) }() // the signal ends it
	s.Drains(over)
	assert.FileExists(t, cast)
}

func (a *agents) fill() {
	for name, entries := range map[string][]string{
		"mail":     {"invoice-118", "offer-37", "complaint-9", "invoice-119"},
		"releases": {"v2.3", "v2.4", "v2.5"},
		"reports":  {},
		"triage":   {"issue-52", "issue-53", "issue-54", "issue-55", "issue-56", "issue-57"},
	} {
		dir := filepath.Join(a.root, name)
		require.NoError(a.t, os.Mkdir(dir, 0o700))
		require.NoError(a.t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), nil, 0o600))
		box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
		require.NoError(a.t, err)
		a.box[name] = box
		for _, id := range entries {
			_, err := box.Append(context.Background(), inbox.Message{ID: id, Text: "Deal with " + id + " as CLAUDE.md says."}, 0)
			require.NoError(a.t, err)
		}
		a.in(name, func(tx *inbox.Tx) error { return tx.In(session(name)).Start(os.Getpid(), nil) })
		if len(entries) > 0 {
			a.in(name, a.next(name))
		}
	}
	a.in("releases", func(tx *inbox.Tx) error {
		if err := tx.DeadLetter(inbox.ReasonFailed); err != nil {
			return err
		}
		_, err := tx.Holds().Pause("the freeze before 2.4", nil)
		return err
	})
}

func session(name string) string {
	return fmt.Sprintf("%08x-328b-4121-8f97-7f6c95137940", len(name)*0x1f3c2ab)
}

func (a *agents) in(name string, do func(tx *inbox.Tx) error) {
	a.t.Helper()
	tx, err := a.box[name].Begin(context.Background())
	require.NoError(a.t, err)
	require.NoError(a.t, errors.Join(do(tx), tx.Commit(), tx.Close()))
}

func (a *agents) next(name string) func(tx *inbox.Tx) error {
	return func(tx *inbox.Tx) error {
		a.spend(tx, name)
		e, err := tx.Next(inbox.Mark{})
		if err == nil {
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: session(name)})
		}
		return err
	}
}

// answer settles what is in flight, and delivers what comes next.
func (a *agents) answer(name, reply string) {
	a.t.Helper()
	a.transcribe(name)
	a.in(name, func(tx *inbox.Tx) error {
		a.spend(tx, name)
		if err := tx.Acknowledge(reply); err != nil {
			return err
		}
		return a.next(name)(tx)
	})
}

// transcribe writes a turn of three requests into the session's transcript.
func (a *agents) transcribe(name string) {
	f, err := os.OpenFile(a.transcript(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(a.t, err)
	_, err = f.WriteString(`{"type":"user","message":{"content":"q"}}` + "\n")
	for range 3 {
		a.asked++
		_, errLine := fmt.Fprintf(f, `{"type":"assistant","message":{"id":"m%d","model":"claude-opus-5-5","usage":{"input_tokens":700,"output_tokens":210,"cache_read_input_tokens":12800}}}`+"\n", a.asked)
		err = errors.Join(err, errLine)
	}
	require.NoError(a.t, errors.Join(err, f.Close()))
}

func (a *agents) transcript(name string) string { return filepath.Join(a.root, name, "t.jsonl") }

// spend has the session's account charged up to here.
func (a *agents) spend(tx *inbox.Tx, name string) {
	account.Of(tx).Position(session(name), a.transcript(name), claude.TranscriptSize(a.transcript(name)), true)
	require.NoError(a.t, meter.ChargeTurn(tx, session(name)))
}
