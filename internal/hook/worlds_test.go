package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/hook"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

// hookWorld is an inbox, the client whose hook works on it, and what both have shown so far.
type hookWorld struct {
	t      testing.TB
	r      *rand.Rand
	dir    string
	policy string
	codex  bool // the client is Codex, whose spending is not counted

	session, transcript string
	prompts, replies    int
	active              bool
	sees                []string // what the model was given and has not answered

	sent     []string
	printed  map[string]int // decisions that the client got
	unsaid   map[string]int // deliveries whose hook was killed before it printed
	answered map[string]bool
	late     map[string]bool // answered at a Stop whose hook was killed
	steps    []string

	bills map[string]*bill // by session
}

// bill is what a session has really spent.
type bill struct {
	transcript      string
	client          int
	total           int64 // the client's own figure
	stated          int64 // the transcript's figure
	spent, requests int64
}

func (w *hookWorld) chance(n int) bool { return w.r.IntN(n) == 0 }

// write adds a line to the transcript, as the client does.
func (w *hookWorld) write(role, text string, meta bool) {
	if w.codex {
		appendTo(w.t, w.transcript, rolloutLines(role, text, fmt.Sprint("prompt-", w.prompts)))
		return
	}
	message := map[string]any{"role": role, "content": text}
	if role == "assistant" {
		b, cost := w.bills[w.session], int64(1+w.r.IntN(9))
		b.requests++
		b.total, b.spent = b.total+cost, b.spent+cost
		message["id"], message["model"] = fmt.Sprint("message-", w.session, b.requests), "claude-opus-5-5"
		message["usage"] = map[string]any{"input_tokens": 2500 * cost, "output_tokens": 0}
	}
	line, err := json.Marshal(map[string]any{
		"uuid": fmt.Sprint("line-", w.r.Uint64()), "type": role, "sessionId": w.session, "isMeta": meta, "message": message,
	})
	require.NoError(w.t, err)
	f, err := os.OpenFile(w.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	_, err = f.Write(append(line, '\n'))
	require.NoError(w.t, err)
	require.NoError(w.t, f.Close())
}

func (w *hookWorld) input(members map[string]any) string {
	members["session_id"], members["transcript_path"] = w.session, w.transcript
	turn := "prompt_id"
	if w.codex {
		turn = "turn_id"
	}
	members[turn] = fmt.Sprint("prompt-", w.prompts)
	b, err := json.Marshal(members)
	require.NoError(w.t, err)
	return string(b)
}

// command returns one of our commands, which is sometimes killed at a write.
func (w *hookWorld) command(stdin string, verb ...string) crash.Command {
	args := append(verb, "--inbox", filepath.Join(w.dir, "inbox.jsonl"), "--on-orphan", w.policy)
	if len(verb) == 0 {
		args = append(args, "--settle", "0")
	}
	c := crash.Command{Name: "command", Args: args, Stdin: stdin, Env: []string{"CLAUDE_PID=", "CLAUDE_CODE_ENTRYPOINT=cli"}}
	if w.chance(4) {
		at := fmt.Sprint(1 + w.r.IntN(12))
		if w.chance(3) {
			at += ",torn"
		}
		c.Env = append(c.Env, crash.EnvKillAt+"="+at)
		w.steps = append(w.steps, "killed at "+at)
	}
	return c
}

// prompt is a person's prompt, which interrupts a turn in progress.
func (w *hookWorld) prompt() {
	w.prompts++
	w.active, w.sees = false, nil
	w.write("user", fmt.Sprint("question ", w.prompts), false)
}

// begin starts a session, or resumes the last one in another process.
func (w *hookWorld) begin(resumed bool) {
	source := "resume"
	if !resumed {
		source = "startup"
		w.session = fmt.Sprint("session-", w.prompts)
		w.transcript = filepath.Join(w.dir, w.session)
		if w.codex {
			w.transcript = rolloutOf(w.dir, w.session)
		}
	}
	b := w.bills[w.session]
	if b == nil {
		b = &bill{transcript: w.transcript}
		w.bills[w.session] = b
	}
	b.client++
	b.total = b.stated
	knew := w.knows(w.session)
	w.command(w.input(map[string]any{"hook_event_name": "SessionStart", "source": source})).Run(w.t)
	if !knew && w.knows(w.session) { // for us it begins here: no hook ran before, or each was killed
		b.spent = 0
	}
	w.prompt()
}

// knows reports whether anything was recorded about a session.
func (w *hookWorld) knows(session string) (known bool) {
	if w.codex {
		return true
	}
	v, err := w.box().View()
	require.NoError(w.t, err)
	a, err := account.Of(v).Charged()
	require.NoError(w.t, errors.Join(err, v.Close()))
	_, err = book.Lines(w.box(), func(l price.Line) { known = known || l.SessionID == session })
	require.NoError(w.t, err)
	return known || a.Session(session) != nil
}

// leave ends the session's client, properly or by a kill. A killed client forgets what it has not written.
func (w *hookWorld) leave() {
	b := w.bills[w.session]
	if b == nil {
		return
	}
	if w.chance(2) {
		w.steps = append(w.steps, "the client is killed")
		return
	}
	b.stated = b.total
	if !w.codex {
		appendTo(w.t, w.transcript, fmt.Sprintf(`{"type":"cost-state","sessionId":%q,"totalCostUSD":%d.%02d}`+"\n", w.session, b.total/100, b.total%100))
	}
	if w.chance(2) {
		w.command(w.input(map[string]any{"hook_event_name": "SessionEnd"})).Run(w.t)
	}
}

// audit wants every cent counted once, in the sums and in the lines.
func (w *hookWorld) audit() {
	if w.codex {
		return
	}
	spent := int64(0)
	for _, b := range w.bills {
		spent += b.spent
	}
	prices, err := book.Read(w.box())
	require.NoError(w.t, err)
	if now := prices.Total().Nanos; strings.Contains(strings.Join(w.steps, " "), "killed at") {
		require.LessOrEqual(w.t, now, spent*cent, "without a session of which no hook could tell yet")
	} else {
		require.Equal(w.t, spent*cent, now, "with what is not charged yet")
	}
	for session, b := range w.bills {
		tx, err := w.box().Begin(context.Background())
		require.NoError(w.t, err)
		account.Of(tx).Position(session, b.transcript, claude.TranscriptSize(b.transcript), false)
		account.Of(tx).Turns(session) // a turn that no hook could report counts as a whole
		require.NoError(w.t, meter.NoteCharge(tx, session, false))
		require.NoError(w.t, tx.Commit())
		require.NoError(w.t, tx.Close())
	}
	nanos, tokens := int64(0), int64(0)
	_, err = book.Lines(w.box(), func(l price.Line) { nanos, tokens = nanos+l.Nanos, tokens+l.Tokens.Input })
	require.NoError(w.t, err)
	require.Equal(w.t, spent*cent, nanos, "dollars")
	require.Equal(w.t, spent*2500, tokens, "tokens")
	v, err := w.box().View()
	require.NoError(w.t, err)
	a, err := account.Of(v).Charged()
	require.NoError(w.t, errors.Join(err, v.Close()))
	require.Equal(w.t, spent*cent, a.Total.Nanos)
	require.Empty(w.t, a.Sessions)
}

// stop answers everything the model was given, and runs the hooks of that Stop.
func (w *hookWorld) stop() {
	w.replies++
	reply := fmt.Sprintf("reply %d to %s", w.replies, strings.Join(w.sees, " "))
	w.write("assistant", reply, false)
	input := w.input(map[string]any{"hook_event_name": "Stop", "stop_hook_active": w.active, "last_assistant_message": reply})
	_, before := w.inFlight()
	results, killed := w.hooks(input)
	gave := w.sees
	w.sees = nil
	for _, out := range results {
		var d struct{ Reason string }
		if json.Unmarshal([]byte(out), &d) != nil || d.Reason == "" {
			continue
		}
		require.False(w.t, w.answered[d.Reason], "%s was answered, and is delivered again", d.Reason)
		w.printed[d.Reason]++
		w.sees = append(w.sees, d.Reason)
	}
	require.LessOrEqual(w.t, len(w.sees), 1, "one Stop delivers two entries")
	if now, delivery := w.inFlight(); delivery != before && now != "" && !slices.Contains(w.sees, now) {
		w.unsaid[now]++
	}
	w.look()
	for _, text := range gave {
		if killed {
			w.late[text] = true // a later Stop of the turn brings another reply
		}
		if strings.HasPrefix(text, "entry-") && !killed {
			require.True(w.t, w.answered[text], "the Stop that %s was answered at did not take the answer", text)
		}
	}
	if w.chance(3) {
		w.sees = append(w.sees, "lint")
	}
	w.handOver()
	if w.active = len(w.sees) > 0; !w.active {
		if w.codex {
			appendTo(w.t, w.transcript, taskComplete(fmt.Sprint("prompt-", w.prompts), reply))
		}
		w.prompt()
	}
}

// handOver writes the texts with which the hooks blocked: Codex has all of them in one line.
func (w *hookWorld) handOver() {
	if w.codex && len(w.sees) > 0 {
		appendTo(w.t, w.transcript, hookPrompt(w.sees...))
		return
	}
	for _, text := range w.sees {
		w.write("user", "Stop hook feedback:\n"+text, true)
	}
}

// hooks runs one or two of our hooks, at once or one after the other.
func (w *hookWorld) hooks(input string) (printed []string, killed bool) {
	note := func(r crash.Result) {
		killed = killed || r.Signal == syscall.SIGKILL
		printed = append(printed, r.Stdout)
		w.steps = append(w.steps, fmt.Sprintf("(status %d, printed %q, said %q)", r.ExitCode, r.Stdout, r.Stderr))
		require.NotEqual(w.t, hook.ExitWake, r.ExitCode, r.Stderr)
	}
	switch w.r.IntN(10) {
	case 0:
		w.steps = append(w.steps, "two hooks")
		a, b := w.command(input).Start(w.t), w.command(input).Start(w.t)
		for _, r := range []*crash.Running{a, b} {
			_, _ = r.Input.Write([]byte(input)) // it may have been killed
		}
		for _, r := range []*crash.Running{a, b} {
			_ = r.Input.Close()
			note(r.Wait(w.t))
		}
	case 1:
		w.steps = append(w.steps, "a hook behind the other")
		note(w.command(input).Run(w.t))
		note(w.command(input).Run(w.t))
	default:
		note(w.command(input).Run(w.t))
	}
	return printed, killed
}

func (w *hookWorld) box() *inbox.Inbox {
	box, err := inbox.Open(filepath.Join(w.dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(w.t, err)
	tx, err := box.Begin(context.Background()) // finish what a kill left
	require.NoError(w.t, err)
	require.NoError(w.t, tx.Close())
	return box
}

// inFlight returns the entry in flight, and the number of the commit that delivered it.
func (w *hookWorld) inFlight() (text string, delivery int64) {
	v, err := w.box().View()
	require.NoError(w.t, err)
	if d := v.InFlight(); d != nil {
		text, delivery = d.Text(), d.DeliveredSeq
	}
	require.NoError(w.t, v.Close())
	return text, delivery
}

// look compares the inbox with what is promised.
func (w *hookWorld) look() {
	box, places := w.box(), map[string][]string{}
	if text, _ := w.inFlight(); text != "" {
		places[text] = append(places[text], "in flight")
	}
	v, err := box.View()
	require.NoError(w.t, err)
	require.NoError(w.t, v.Waits(nil, func(e inbox.Waiting) bool {
		places[e.Text] = append(places[e.Text], "queued")
		return true
	}))
	require.NoError(w.t, v.Close())
	textOf := map[string]string{}
	for l := range strings.Lines(readAll(w.t, box.Path())) {
		l = strings.TrimSuffix(l, "\n")
		textOf[entryIDOf(l)] = l
	}
	for _, r := range jsonLines[inbox.Result](w.t, box.ResultsPath()) {
		text := textOf[r.EntryID]
		places[text] = append(places[text], "answered")
		w.answered[text] = true
		require.True(w.t, w.late[text] || strings.HasSuffix(r.Reply, " to "+text) || strings.Contains(r.Reply, " to "+text+" "), "%s has the reply %q", text, r.Reply)
		require.Positive(w.t, w.printed[text], "%s is answered, and was not printed", text)
		require.LessOrEqual(w.t, r.Attempt, w.printed[text]+w.unsaid[text], "attempts of %s", text)
	}
	letters, _, err := script.Letters(box)
	require.NoError(w.t, err)
	for _, l := range letters {
		places[l.Text()] = append(places[l.Text()], "dead")
		require.LessOrEqual(w.t, l.Attempts, w.printed[l.Text()]+w.unsaid[l.Text()], "attempts of %s", l.Text())
	}
	for _, e := range jsonLines[inbox.Event](w.t, box.EventsPath()) {
		if e.Event == inbox.EventDropped {
			require.Equal(w.t, "drop", w.policy)
			places[textOf[e.EntryID]] = append(places[textOf[e.EntryID]], "dropped")
		}
	}
	for _, text := range w.sent {
		require.Len(w.t, places[text], 1, "%s is %v", text, places[text])
	}
}

func readAll(t testing.TB, path string) string {
	b, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(b)
}

func (w *hookWorld) step() {
	kind := []string{"echo", "echo", "echo", "echo", "stop", "stop", "stop", "stop", "stop", "stop", "prompt", "resume", "new session", "recover"}[w.r.IntN(14)]
	w.steps = append(w.steps, kind)
	switch kind {
	case "echo":
		text := fmt.Sprintf("entry-%04d", len(w.sent))
		w.sent = append(w.sent, text)
		f, err := os.OpenFile(filepath.Join(w.dir, "inbox.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(w.t, err)
		_, err = f.WriteString(text + "\n")
		require.NoError(w.t, err)
		require.NoError(w.t, f.Close())
	case "stop":
		w.stop()
	case "prompt":
		w.prompt()
	case "resume":
		w.leave()
		w.begin(true)
	case "new session":
		w.leave()
		w.begin(false)
	case "recover":
		w.leave()
		w.command("", "recover").Run(w.t)
		w.begin(false)
	}
	w.look()
}

// TestHookWorlds takes random steps with real hooks and a simulated client. A failure names its
// seed and the steps.
func TestHookWorlds(t *testing.T) {
	worlds, steps := 1, 15
	if exhaustive {
		worlds, steps = 40, 30
	}
	for seed := range uint64(worlds * 6) {
		w := &hookWorld{
			t: t, r: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir(),
			printed: map[string]int{}, unsaid: map[string]int{}, answered: map[string]bool{}, late: map[string]bool{}, bills: map[string]*bill{},
		}
		w.policy, w.codex = []string{"deadletter", "retry", "drop"}[seed%3], seed >= uint64(worlds*3)
		w.prompts = 1
		t.Run(fmt.Sprint("seed ", seed, " ", w.policy), func(t *testing.T) {
			w.t = t
			defer func() {
				if t.Failed() {
					t.Logf("the steps were: %s", strings.Join(w.steps, ", "))
				}
			}()
			w.begin(false)
			for range steps {
				w.step()
			}
			w.audit()
		})
	}
}
