package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hook"
	"heartbeat/internal/money/price"
)

// spender is a session that asks for one tool after another, at 0.006 dollars a request.
type spender struct {
	t        *testing.T
	dir      string
	args     []string
	requests int64
	model    string
}

const requestNanos = 6_000_000

// spending starts a session that was delivered A at the end of its first turn.
func spending(t *testing.T, args ...string) *spender {
	t.Helper()
	dir := t.TempDir()
	s := &spender{t: t, dir: dir, model: "claude-opus-5-5", args: append([]string{"--inbox", filepath.Join(dir, "inbox.jsonl")}, args...)}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte("A\nB\nC\n"), 0o600))
	s.user("begin")
	return s
}

func (s *spender) deliver() *spender {
	s.t.Helper()
	s.request()
	require.Contains(s.t, s.stop(false, "ready"), `"reason":"A"`)
	s.user("Stop hook feedback:\\nA")
	return s
}

func (s *spender) transcript() string { return filepath.Join(s.dir, "transcript.jsonl") }

func (s *spender) line(text string) {
	f, err := os.OpenFile(s.transcript(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	_, err = f.WriteString(text + "\n")
	require.NoError(s.t, err)
	require.NoError(s.t, f.Close())
}

func (s *spender) user(text string) {
	s.line(fmt.Sprintf(`{"type":"user","message":{"content":"%s"}}`, text))
}

func (s *spender) request() { s.requestOf(1000) }

func (s *spender) requestOf(tokens int) { s.requestWith(tokens, "t") }

func (s *spender) requestWith(tokens int, tool string) {
	s.requests++
	s.line(fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","model":%q,"usage":{"input_tokens":%d,"output_tokens":100},"content":[{"type":"tool_use","id":%q}]}}`, s.requests, s.model, tokens, tool))
}

func (s *spender) event(name, more string) string {
	s.t.Helper()
	return inProcess(s.t, s.args, fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s0","prompt_id":"p-s0","transcript_path":%q%s}`, name, s.transcript(), more))
}

// stop ends a turn.
func (s *spender) stop(active bool, reply string) (out string) {
	s.t.Helper()
	s.line(fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","model":%q,"usage":{},"content":[{"type":"text","text":%q}]}}`, s.requests, s.model, reply))
	return s.event("Stop", fmt.Sprintf(`,"stop_hook_active":%v,"last_assistant_message":%q`, active, reply))
}

func (s *spender) letters() []inbox.DeadLetter {
	return jsonLines[inbox.DeadLetter](s.t, filepath.Join(s.dir, ".dead-letter.jsonl"))
}

// A limit in dollars holds without any figure from the client. Spending before the entry does not count, and at most
// one request exceeds the limit.
func TestALimitInDollars(t *testing.T) {
	hook.SetLineWait(time.Hour)
	s := spending(t, "--max-cost-per-entry", "0.011").deliver()
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	s.request()
	require.Contains(t, s.event("PostToolBatch", ""), "it cost 0.012 of 0.011 USD")
	require.Len(t, s.letters(), 1)
	assert.Equal(t, inbox.ReasonOverBudget, s.letters()[0].Reason)
	assert.EqualValues(t, 2*requestNanos, price.Of(s.letters()[0].Cost).Nanos)
}

// No limit in dollars can hold for a model without a known price, so the first request stops the entry. Without such a
// limit the entry continues.
func TestAModelWithoutAPrice(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, limit := range []string{"--max-cost-per-entry", "--max-cost-per-day"} {
		s := spending(t, limit, "100").deliver()
		s.model = "house-model-7"
		s.request()
		require.Contains(t, s.event("PostToolBatch", ""), "1 request went to a model whose price nobody knows", limit)
		require.Len(t, s.letters(), 1)
	}
	s := spending(t, "--max-tokens-per-entry", "1M").deliver()
	s.model = "house-model-7"
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
}

// While the table of prices cannot be read, limits hold by the prices that are built in, no entry is set aside for a
// price that may be in the table, and no other one is delivered.
func TestALimitWithoutATable(t *testing.T) {
	hook.SetLineWait(time.Hour)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	require.NoError(t, os.Mkdir(filepath.Join(home, "heartbeat"), 0o700))
	s := spending(t, "--max-cost-per-entry", "0.011").deliver()
	require.NoError(t, os.WriteFile(filepath.Join(home, "heartbeat", "prices.toml"), []byte("[models.house-model-7]\ninput = x\n"), 0o600))
	s.model = "house-model-7"
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	s.model = "claude-opus-5-5"
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	s.request()
	require.Contains(t, s.event("PostToolBatch", ""), "it cost 0.012 of 0.011 USD")
	require.Len(t, s.letters(), 1)
	require.Empty(t, s.stop(false, "stopped"))
	p, err := s.view().Holds().Paused()
	require.NoError(t, err)
	require.NotNil(t, p, "a multiplier might be missing")
	assert.Contains(t, p.Reason, "line 2: it is no [models.NAME]")
	assert.NotNil(t, p.Until, "a file that is whole again needs nobody's command")
}

// At the limit of a day a subagent ends that goes on after its entry was answered, in a launched session; whatever a
// person asks for goes on.
func TestASubagentBeyondItsEntry(t *testing.T) {
	for _, launched := range []bool{true, false} {
		s := spending(t, "--max-cost-per-day", "0.05")
		if launched {
			s.args = append(s.args, "--signal-file", filepath.Join(s.dir, "signal"))
		}
		s.deliver()
		for _, next := range []string{`"reason":"B"`, `"reason":"C"`, ""} {
			s.request()
			require.Contains(t, s.stop(true, "did it"), next)
			s.user("Stop hook feedback:\\nmore")
		}
		require.NoFileExists(t, filepath.Join(s.dir, ".in-flight"))
		for range 4 {
			s.request()
		}
		require.Empty(t, s.event("PostToolBatch", `,"agent_id":"a1"`))
		s.request()
		require.Empty(t, s.event("PostToolBatch", ""))
		if said := s.event("PostToolBatch", `,"agent_id":"a1"`); launched {
			assert.Contains(t, said, `{"continue":false,"stopReason":"heartbeat: today cost 0.054 of 0.05 USD (the limit of a day)"}`)
		} else {
			assert.Empty(t, said)
		}
	}
}

// What a turn spent before midnight is not of the day that it goes on in.
func TestATurnThatSpansMidnight(t *testing.T) {
	hook.SetLineWait(time.Hour)
	s := spending(t, "--max-cost-per-day", "0.011").deliver()
	for range 3 {
		s.requests++
		s.line(fmt.Sprintf(`{"type":"assistant","timestamp":"2026-03-04T23:59:00Z","message":{"id":"m%d","model":%q,"usage":{"input_tokens":1000,"output_tokens":100}}}`, s.requests, s.model))
	}
	require.Empty(t, s.event("PostToolBatch", ""))
	s.request()
	require.Contains(t, s.event("PostToolBatch", ""), "today cost 0.012 of 0.011 USD")
	require.Empty(t, s.letters(), "it did not reach the limit alone")
}

// Close to a limit in tokens, the hook waits for the answer that asked for the tools: the client may write it after it
// has run them. At most one request exceeds the limit.
func TestTheAnswerIsWaitedFor(t *testing.T) {
	hook.SetLineWait(time.Minute)
	s := spending(t, "--max-tokens-per-entry", "3k").deliver()
	for n := 1; ; n++ {
		said, tool := make(chan string), fmt.Sprintf("t%d", n)
		go func() {
			said <- s.event("PostToolBatch", fmt.Sprintf(`,"tool_calls":[{"tool_name":"Bash","tool_use_id":%q}]`, tool))
		}()
		s.requestWith(1000, tool) // before the hook looks, or while it waits
		if out := <-said; n < 3 {
			require.Empty(t, out)
			continue
		} else {
			require.Contains(t, out, "it took 3300 of 3000 tokens")
		}
		break
	}
	require.Len(t, s.letters(), 1)
	assert.Equal(t, inbox.ReasonOverBudget, s.letters()[0].Reason)
}

// A missing answer counts as large as the largest recent one. Far from a limit the hook does not wait.
func TestAnAnswerThatDoesNotCome(t *testing.T) {
	hook.SetLineWait(10 * time.Millisecond)
	s := spending(t, "--max-tokens-per-entry", "3k").deliver()
	missing := `,"tool_calls":[{"tool_use_id":"missing"}]`
	s.request()
	require.Empty(t, s.event("PostToolBatch", missing))
	s.request()
	require.Contains(t, s.event("PostToolBatch", missing), "it took 3300 of 3000 tokens")

	hook.SetLineWait(time.Hour)
	s = spending(t, "--max-tokens-per-entry", "100k").deliver()
	s.request()
	require.Empty(t, s.event("PostToolBatch", missing))
}

// A day's limit gives the entry back, unless the entry alone reached it, and pauses delivery.
func TestTheDaysLimit(t *testing.T) {
	for name, c := range map[string]struct {
		args     []string
		requests int
		reason   inbox.Reason
		says     string
	}{
		"day":          {[]string{"--max-tokens-per-day", "3k"}, 2, "", "today cost 3300 of 3000 tokens"},
		"day alone":    {[]string{"--max-tokens-per-day", "3k"}, 1, inbox.ReasonOverBudget, "in one day it took 5100 of 3000 tokens"},
		"last attempt": {[]string{"--max-tokens-per-day", "3k", "--max-attempts", "1"}, 2, inbox.ReasonOverBudget, "today cost 3300 of 3000 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spending(t, c.args...).deliver()
			for n := range c.requests {
				if strings.HasSuffix(name, "alone") {
					s.requestOf(5000)
				} else {
					s.request()
				}
				if out := s.event("PostToolBatch", ""); n < c.requests-1 {
					require.Empty(t, out)
				} else {
					require.Contains(t, out, c.says)
				}
			}
			if c.reason != "" {
				require.Len(t, s.letters(), 1)
				assert.Equal(t, c.reason, s.letters()[0].Reason)
				assert.Equal(t, name == "last attempt", strings.HasSuffix(s.letters()[0].Failure.Message, ", at the last of its attempts (1)"))
				return
			}
			require.Empty(t, s.letters())
			events := jsonLines[inbox.Event](t, filepath.Join(s.dir, ".events.jsonl"))
			if name == "day" {
				paused := events[len(events)-2]
				assert.Equal(t, inbox.EventPaused, paused.Event)
				require.NotNil(t, paused.Until)
				at := paused.Until.Local()
				assert.Zero(t, at.Hour()+at.Minute()+at.Second(), "midnight")
			}
			last := events[len(events)-1]
			assert.Equal(t, inbox.EventRedelivered, last.Event)
			assert.False(t, last.Uncounted)
			assert.Contains(t, last.Reason, c.says)
		})
	}
}

// A day's limit never shortens a pause. If it is reached with nothing in flight, nothing is delivered.
func TestADaysLimitLeavesAPauseAlone(t *testing.T) {
	s := spending(t, "--max-tokens-per-day", "3k")
	s.deliver()
	inProcess(t, append([]string{"pause"}, s.args[:2]...), "")
	s.request()
	s.request()
	require.Contains(t, s.event("PostToolBatch", ""), "today cost")
	for _, e := range jsonLines[inbox.Event](t, filepath.Join(s.dir, ".events.jsonl")) {
		assert.Nil(t, e.Until)
	}
}

// In a chain of short turns, the limit of a day is checked at the end of each turn.
func TestAStopOverTheDaysLimit(t *testing.T) {
	s := spending(t, "--max-cost-per-day", "0.015").deliver()
	s.request()
	require.Contains(t, s.stop(true, "did A"), `"reason":"B"`, "0.012 of 0.015")
	s.user("Stop hook feedback:\\nB")
	s.request()
	require.Empty(t, s.stop(true, "did B"))
	events := jsonLines[inbox.Event](t, filepath.Join(s.dir, ".events.jsonl"))
	require.NotEmpty(t, events)
	assert.Contains(t, events[len(events)-1].Reason, "today cost 0.018 of 0.015 USD")
}

// The client writes a turn's answer late. Close to a limit the hook waits for it, but not without end.
func TestAStopWaitsForTheAnswer(t *testing.T) {
	hook.SetLineWait(time.Minute)
	s := spending(t, "--max-tokens-per-day", "2k").deliver()
	said := make(chan string)
	go func() { said <- s.event("Stop", `,"stop_hook_active":true,"last_assistant_message":"did A"`) }()
	s.requests++ // before the hook looks, or while it waits
	s.line(`{"type":"assistant","message":{"id":"late","usage":{"input_tokens":1000,"output_tokens":100},"content":[{"type":"text","text":"did A"}]}}`)
	require.Empty(t, <-said, "the day is over its limit")

	hook.SetLineWait(10 * time.Millisecond)
	s = spending(t, "--max-tokens-per-day", "2k").deliver()
	require.Contains(t, s.event("Stop", `,"stop_hook_active":true,"last_assistant_message":"did A"`), `"reason":"B"`)
}

// A session is ended once the client has written its last answer, so that what it cost is known.
func TestASessionEndsWithItsAnswerWritten(t *testing.T) {
	hook.SetUsageWait(time.Minute)
	defer hook.SetUsageWait(time.Second)
	s := spending(t).deliver()
	over := filepath.Join(s.dir, "over")
	s.args = append(s.args, "--signal-file", over)
	for _, next := range []string{"B", "C"} {
		require.Contains(t, s.stop(true, "before "+next), `"reason":"`+next+`"`)
		s.user("Stop hook feedback:\\n" + next)
	}
	said := make(chan string)
	go func() { said <- s.event("Stop", `,"stop_hook_active":true,"last_assistant_message":"did C"`) }()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(s.dir, ".results.jsonl"))
		return err == nil && strings.Count(string(text), "\n") == 3
	}, 5*time.Minute, time.Millisecond)
	assert.NoFileExists(t, over)
	s.line(`{"type":"assistant","message":{"id":"late","usage":{"input_tokens":1000,"output_tokens":100},"content":[{"type":"text","text":"did C"}]}}`)
	require.Empty(t, <-said)
	assert.FileExists(t, over)
}
