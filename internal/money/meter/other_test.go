package meter_test

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
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// A second client of the session writes its lines between those of an entry's turn. What it spends is no entry's, also
// after a line of the entry's, and the entry's spending is the entry's, also after a line of the second client's. A task's
// report goes on with the entry, also after the person has used the client without asking the model, and after the client
// has summarised the conversation in the turn of the report. The cost of each model is its own.
func TestASecondClient(t *testing.T) {
	r := newRig(t)
	user := func(prompt, uuid, parent, text string) string {
		return fmt.Sprintf(`{"parentUuid":%q,"promptId":%q,"type":"user","message":{"content":%q},"uuid":%q}`, parent, prompt, text, uuid)
	}
	result := func(prompt, uuid, parent string) string {
		return fmt.Sprintf(`{"parentUuid":%q,"promptId":%q,"type":"user","message":{"content":[{"type":"tool_result"}]},"uuid":%q}`, parent, prompt, uuid)
	}
	line := func(kind, uuid, parent string) string {
		return fmt.Sprintf(`{"parentUuid":%q,"type":%q,"uuid":%q}`, parent, kind, uuid)
	}
	answer := func(uuid, parent string, tokens int) string {
		return fmt.Sprintf(`{"parentUuid":%q,"type":"assistant","message":{"id":"of %s","model":"claude-opus-5-5","usage":{"input_tokens":%d}},"uuid":%q}`, parent, uuid, tokens, uuid)
	}
	const own, other, task = "008fd6b2-0000-4000-8000-000000000000", "0353ebeb-0000-4000-8000-000000000000", "0c0ffee0-0000-4000-8000-000000000000"
	const local, task2 = "10ca1000-0000-4000-8000-000000000000", "0c0ffee2-0000-4000-8000-000000000000"
	from := r.write(user(own, "e1", "", "Stop hook feedback:\nA"), answer("e2", "e1", 1))
	r.write(
		user(other, "p1", "e1", "a person"), line("attachment", "p2", "p1"),
		answer("p3", "p2", 100), result(own, "e3", "e2"), result(other, "p4", "p3"),
		answer("e4", "e3", 10), strings.Replace(answer("p5", "p4", 200), "opus-5-5", "haiku-4-5", 1),
		user(task, "e5", "e4", "<task-notification>done"), answer("e6", "e5", 20),
		user(other, "", "p5", "a line without an id"), answer("e16", "", 1000), // the latter has no parent
	)
	r.write(
		user(local, "e7", "e6", "<command-name>/context</command-name>"), user(local, "e8", "e7", "<local-command-stdout>much</local-command-stdout>"),
		user(task2, "e9", "e8", "<task-notification>done"), answer("e10", "e9", 40),
		fmt.Sprintf(`{"promptId":%q,"type":"user","isCompactSummary":true,"message":{"content":"all of it"},"uuid":"e11"}`, task2),
		user(task2, "e12", "e11", "go on"), answer("e13", "e12", 80),
		line("attachment", "p6", "p5"), fmt.Sprintf(`{"promptId":%q,"parentUuid":"p6","type":"user","message":{"content":"without a uuid"}}`, other),
		line("attachment", "e14", ""), answer("e15", "e14", 160), answer("p7", "p6", 400),
	)
	s := &account.SessionTurns{ID: session, Transcript: r.path, Turns: []account.Turn{{From: from, Prompt: own, Charged: price.Charged{EntryID: "a"}}}}
	for prompt, want := range map[string][]int64{own: {1311, 700}, "": {2011}} { // of an earlier release no prompt is known
		s.Turns[0].Prompt = prompt
		c, err := meter.CountTurns(s, time.Time{}, "", "")
		require.NoError(t, err)
		var got []int64
		for i, of := range c.Open(session) {
			got = append(got, of.Tokens.Input)
			assert.Equal(t, i > 0, of.Outside())
		}
		assert.Equal(t, want, got)
		assert.Len(t, c.Open(session)[len(got)-1].Models, 2)
	}
}

// What the second client spent before midnight counts towards no later day, in whatever turn of an entry.
func TestASecondClientBeforeMidnight(t *testing.T) {
	r := newRig(t)
	const own, other = "008fd6b2-0000-4000-8000-000000000000", "0353ebeb-0000-4000-8000-000000000000"
	midnight := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	answer := func(id, parent string, at time.Time) string {
		return fmt.Sprintf(`{"parentUuid":%q,"type":"assistant","timestamp":%q,"message":{"id":%q,"model":"claude-opus-5-5","usage":{"input_tokens":100}},"uuid":%q}`, parent, at.Format(time.RFC3339), id, id)
	}
	r.write(
		fmt.Sprintf(`{"promptId":%q,"type":"user","message":{"content":"a person"},"uuid":"p1"}`, other),
		answer("p2", "p1", midnight.Add(-time.Hour)), answer("p3", "p1", midnight.Add(time.Hour)),
	)
	s := &account.SessionTurns{ID: session, Transcript: r.path, Turns: []account.Turn{{Prompt: own, Charged: price.Charged{EntryID: "a"}}}}
	c, err := meter.CountTurns(s, midnight, "", "")
	require.NoError(t, err)
	of := c.Open(session)[1]
	assert.EqualValues(t, 200, of.Tokens.Input)
	assert.EqualValues(t, 100, of.Before.Tokens.Input)
}

// A subagent names the prompt that it works for. What it spends for a second client is no entry's, nor what it spends in the
// background after its entry's turn, whether that is charged already or not. One that names none counts as before.
func TestASubagentOfAnotherPrompt(t *testing.T) {
	const first, second, other = "008fd6b2-0000-4000-8000-000000000000", "0353ebeb-0000-4000-8000-000000000000", "0c0ffee0-0000-4000-8000-000000000000"
	at := func(second int) string { return fmt.Sprintf("2026-11-22T14:45:%02d.000Z", second) }
	user := func(prompt string, second int) string {
		return fmt.Sprintf(`{"promptId":%q,"type":"user","message":{"content":"<task-notification>\n<summary>Stop hook feedback</summary>"},"timestamp":%q,"uuid":"u%[3]d"}`, prompt, at(second), second)
	}
	answer := func(second, tokens int) string {
		return fmt.Sprintf(`{"type":"assistant","timestamp":%q,"message":{"id":"of %d","model":"claude-opus-5-5","usage":{"input_tokens":%d}},"uuid":"a%[2]d"}`, at(second), second, tokens)
	}
	result := func(prompt string, second int) string {
		return strings.Replace(user(prompt, second), `"<task-notification>\n<summary>Stop hook feedback</summary>"`, `[{"type":"tool_result"}]`, 1)
	}
	r := newRig(t)
	r.write(user(first, 10), answer(11, 1))
	from := r.write(user(second, 20), answer(21, 10))
	r.write(user(other, 30))
	r.agent("agent-1.jsonl", user(first, 12), answer(13, 100), result(second, 21), answer(22, 200))
	r.agent("agent-2.jsonl", user(second, 23), answer(24, 1000), answer(32, 2000))
	r.agent("agent-3.jsonl", user(other, 33), answer(34, 4000))
	r.agent("agent-4.jsonl", answer(25, 10_000))
	turns := []account.Turn{{Prompt: first, Charged: price.Charged{EntryID: "a"}}, {From: from, Prompt: second, Charged: price.Charged{EntryID: "b"}}}
	for i, want := range [][]int64{{101, 13010, 4200}, {13010, 4200}} {
		s := &account.SessionTurns{ID: session, Transcript: r.path, Turns: turns[i:]}
		if i > 0 {
			s.Turns[0].Since = 1795358720_000 // 14:45:20
		}
		c, err := meter.CountTurns(s, time.Time{}, "", "")
		require.NoError(t, err)
		var got []int64
		for _, of := range c.Open(session) {
			got = append(got, of.Tokens.Input)
		}
		assert.Equal(t, want, got)
	}
}

// userLine is a line of a user with this content, which is JSON, in the turn of a prompt.
func userLine(prompt, uuid, parent, content string) string {
	return fmt.Sprintf(`{"parentUuid":%q,"promptId":%q,"type":"user","message":{"content":%s},"uuid":%q}`, parent, prompt, content, uuid)
}

// answerLine is an answer that took so many tokens of input.
func answerLine(uuid, parent string, tokens int) string {
	return fmt.Sprintf(`{"parentUuid":%q,"type":"assistant","message":{"id":%q,"model":"claude-opus-5-5","usage":{"input_tokens":%d}},"uuid":%[2]q}`, parent, uuid, tokens)
}

// The report of a task is the entry's that left it running, also if the next entry comes in its turn.
func TestTheReportOfATaskInWhichTheNextEntryComes(t *testing.T) {
	const own, task = "008fd6b2-0000-4000-8000-000000000000", "0c0ffee0-0000-4000-8000-000000000000"
	const result = `[{"type":"tool_result"}]`
	r := newRig(t)
	from := r.write(userLine(own, "e1", "", `"A"`), answerLine("e2", "e1", 1))
	r.write(userLine(own, "e3", "e2", result), answerLine("e4", "e3", 2))
	r.write(userLine(task, "e5", "e4", `"<task-notification>done"`), answerLine("e6", "e5", 4), userLine(task, "e7", "e6", result), answerLine("e8", "e7", 8))
	next := r.write(userLine(task, "g1", "e8", `"B"`), answerLine("g2", "g1", 100))
	a, b := account.Turn{From: from, Prompt: own, Charged: price.Charged{EntryID: "a"}}, account.Turn{From: next, Prompt: task, Charged: price.Charged{EntryID: "b"}}
	for want, turns := range map[string][]account.Turn{"[15 100]": {a, b}, "[100]": {b}} {
		c, err := meter.CountTurns(&account.SessionTurns{ID: session, Transcript: r.path, Turns: turns}, time.Time{}, "", "")
		require.NoError(t, err)
		var got []int64
		for _, of := range c.Open(session) {
			got = append(got, of.Tokens.Input)
		}
		assert.Equal(t, want, fmt.Sprint(got))
	}
}

// A long turn has the report of a task, and lines of the client's behind it. The entry's limit counts to the end.
func TestALongTurnInTheReportOfATask(t *testing.T) {
	const own, task = "008fd6b2-0000-4000-8000-000000000000", "0c0ffee0-0000-4000-8000-000000000000"
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("do it\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	p := &printing{T: t, box: box, transcript: filepath.Join(dir, session+".jsonl")}
	line := func(prompt, uuid, parent, more string) {
		p.line(`{"parentUuid":%q,"promptId":%q,"type":"user",%s,"timestamp":"2026-11-22T14:45:%02d.000Z","uuid":%q}`, parent, prompt, more, p.requests, uuid)
	}
	answer := func(uuid, parent string) {
		p.requests++
		p.line(`{"parentUuid":%q,"type":"assistant","message":{"id":%q,"model":"claude-opus-5-5","usage":{"input_tokens":1}},"timestamp":"2026-11-22T14:45:%02d.000Z","uuid":%[2]q}`, parent, uuid, p.requests)
	}
	const result, feedback = `"message":{"content":[{"type":"tool_result"}]}`, `"isMeta":true,"message":{"content":"Stop hook feedback:\ngo on"}`
	p.line("")
	p.in(func(tx *inbox.Tx) {
		account.Of(tx).Position(session, p.transcript, 1, true)
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: session, PromptID: own})
		require.NoError(t, err)
	})
	line(own, "e1", "", feedback)
	answer("e2", "e1")
	line(task, "e3", "e2", `"message":{"content":"<task-notification>done"}`)
	answer("e4", "e3")
	line(task, "e5", "e4", `"message":{"content":[{"type":"tool_result","content":"`+strings.Repeat("x", 300<<10)+`"}]}`)
	answer("e6", "e5")
	line(task, "e65", "e6", result)
	answer("e66", "e65")
	line(task, "e7", "e66", feedback)
	answer("e8", "e7")
	line(task, "e9", "e8", result)
	answer("e10", "e9")
	p.in(func(tx *inbox.Tx) { require.NoError(t, meter.ChargeTurn(tx, session)) })
	line(task, "e11", "e10", result)
	answer("e12", "e11")
	p.in(func(tx *inbox.Tx) {
		require.NoError(t, meter.ChargeTurn(tx, session))
		assert.EqualValues(t, 7, account.Of(tx).Spending().Entry.Tokens.Input)
	})
}

// The client gives a command of its own an id, also in the middle of an entry's turn, and results of tools name it from then
// on, whether the command leaves a line or not. What the turn spends remains the entry's, and so do its subagents.
func TestACommandInTheMiddleOfATurn(t *testing.T) {
	const own, command = "008fd6b2-0000-4000-8000-000000000000", "10ca1000-0000-4000-8000-000000000000"
	const result = `[{"type":"tool_result"}]`
	r := newRig(t)
	from := r.write(userLine(own, "e1", "", `"A"`), answerLine("e2", "e1", 1), userLine(command, "e3", "e2", result), answerLine("e4", "e3", 10), userLine(command, "e5", "e4", result), answerLine("e6", "e5", 100))
	r.agent("agent-1.jsonl", userLine(own, "a1", "", `"help"`), userLine(command, "a2", "a1", result), answerLine("a3", "a2", 1000))
	s := &account.SessionTurns{ID: session, Transcript: r.path, Turns: []account.Turn{{From: from, Prompt: own, Charged: price.Charged{EntryID: "a"}}}}
	c, err := meter.CountTurns(s, time.Time{}, "", "")
	require.NoError(t, err)
	require.Len(t, c.Open(session), 1)
	assert.EqualValues(t, 1111, c.Open(session)[0].Tokens.Input)
}
