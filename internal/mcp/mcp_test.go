package mcp

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate/schema"
	recovery "heartbeat/recover"
)

// TestVerbs runs the verbs of heartbeat, whose package imports this one.
var TestVerbs cli.Verbs

func newBox(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// deliver puts the next entry in flight, to this process.
func deliver(t *testing.T, path string) {
	t.Helper()
	pid := os.Getpid()
	e := recovery.Evidence{Process: inbox.ProcessOf(pid)}
	in(t, path, func(tx *inbox.Tx) {
		next, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(next, inbox.Recipient{SessionID: "s", Evidence: e.Encode()})
		require.NoError(t, err)
	})
}

func in(t *testing.T, path string, do func(*inbox.Tx)) {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	do(tx)
	require.NoError(t, tx.Commit())
}

// client is connected to a server with these flags.
func client(t *testing.T, o flags) *sdk.ClientSession {
	t.Helper()
	s, err := open(&o, TestVerbs)
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	_, err = s.build().Connect(t.Context(), transport(in, out), nil)
	require.NoError(t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), transport(fromServer, toServer), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// call returns what a tool answered, or its error as the model reads it.
func call(t *testing.T, c *sdk.ClientSession, tool string, args any) (answer map[string]any, failed string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, err.Error()
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		return nil, text
	}
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	again, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(again))
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	at := slices.IndexFunc(list.Tools, func(one *sdk.Tool) bool { return one.Name == tool })
	declared, err := json.Marshal(list.Tools[at].OutputSchema)
	require.NoError(t, err)
	assert.NoError(t, schema.Check(declared, []byte(text)), "what the tool says of its output")
	return answer, ""
}

type object = map[string]any

func TestToolsOfEachRole(t *testing.T) {
	for role, want := range map[string]string{
		agent:    "enqueue task_current task_done task_extend task_fail task_reject",
		producer: "cancel enqueue result",
		operator: "costs dead_letter_accept dead_letter_list dead_letter_purge dead_letter_requeue dead_letter_show pause peek resume status",
	} {
		c := client(t, flags{inbox: newBox(t, ""), role: role})
		list, err := c.ListTools(t.Context(), nil)
		require.NoError(t, err)
		var names []string
		does := map[string][]string{}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			assert.NotEmpty(t, tool.Description)
			require.NotNil(t, tool.Annotations, tool.Name)
			assert.False(t, *tool.Annotations.OpenWorldHint, tool.Name)
			says := map[bool]string{true: "removes", false: "adds"}[*tool.Annotations.DestructiveHint]
			switch {
			case tool.Annotations.ReadOnlyHint:
				says = "looks"
			case tool.Annotations.IdempotentHint:
				says += " once"
			}
			does[says] = append(does[says], tool.Name)
		}
		assert.Equal(t, want, strings.Join(names, " "), role)
		assert.Equal(t, hints[role], does)
	}
}

// hints are what clients go by when they ask a person before a call.
var hints = map[string]map[string][]string{
	agent:    {"looks": {"task_current"}, "adds": {"enqueue"}, "adds once": {"task_done", "task_extend", "task_fail", "task_reject"}},
	producer: {"looks": {"result"}, "adds": {"enqueue"}, "removes once": {"cancel"}},
	operator: {
		"looks": {"costs", "dead_letter_list", "dead_letter_show", "peek", "status"}, "removes once": {"dead_letter_purge"},
		"adds once": {"dead_letter_accept", "dead_letter_requeue", "pause", "resume"},
	},
}

func TestAnAgent(t *testing.T) {
	path := newBox(t, `{"id":"job","prompt":"do it"}`+"\n")
	c := client(t, flags{inbox: path, role: agent})
	for _, tool := range []string{"task_current", "task_done"} {
		_, failed := call(t, c, tool, object{})
		assert.Contains(t, failed, "works on no entry", tool)
	}
	deliver(t, path)
	now, failed := call(t, c, "task_current", object{})
	require.Empty(t, failed)
	assert.Equal(t, []any{"job", "do it", 1.0}, []any{now["id"], now["prompt"], now["attempt"]})
	_, failed = call(t, c, "task_extend", object{"for": "30m", "progress": "half"})
	require.Empty(t, failed)
	_, failed = call(t, c, "task_fail", object{"reason": "busy", "retry_after": "1h"})
	require.Empty(t, failed)
	_, failed = call(t, c, "task_reject", object{"reason": "no"})
	require.Empty(t, failed)
	now, failed = call(t, c, "task_done", object{"result": "42"})
	require.Empty(t, failed)
	assert.Equal(t, "done", now["verdict"].(object)["verdict"])
	in(t, path, func(tx *inbox.Tx) {
		assert.Equal(t, "42", tx.InFlight().Verdict.Text)
		assert.Equal(t, "half", tx.InFlight().Progress.Text)
	})
}

// What is said late, of an entry that was named, meets no other one.
func TestALateWord(t *testing.T) {
	path := newBox(t, `{"id":"first","prompt":"a"}`+"\n"+`{"id":"second","prompt":"b"}`+"\n")
	c := client(t, flags{inbox: path, role: agent})
	words := map[string]object{
		"task_done": {"result": "42"}, "task_fail": {"reason": "x"}, "task_reject": {"reason": "x"}, "task_extend": {"for": "1h", "progress": "half"},
	}
	deliver(t, path)
	now, failed := call(t, c, "task_current", object{})
	require.Empty(t, failed)
	in(t, path, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) })
	deliver(t, path)
	for tool, say := range words {
		for _, name := range []any{"first", now["entry_id"]} {
			say["entry"] = name
			_, failed = call(t, c, tool, say)
			assert.Contains(t, failed, "is not worked on any more, and nothing was said of it: this session works on second now", tool)
		}
	}
	in(t, path, func(tx *inbox.Tx) {
		assert.Nil(t, tx.InFlight().Verdict)
		assert.Nil(t, tx.InFlight().Progress)
	})
	for tool, say := range words {
		say["entry"] = "second"
		_, failed = call(t, c, tool, say)
		assert.Empty(t, failed, tool)
	}
}

func TestWhatATooldoesNotTake(t *testing.T) {
	path := newBox(t, "one\n")
	deliver(t, path)
	agent := client(t, flags{inbox: path, role: agent})
	producer := client(t, flags{inbox: path, role: producer})
	operator := client(t, flags{inbox: path, role: operator})
	for _, c := range []struct {
		*sdk.ClientSession
		tool string
		args any
		says string
	}{
		{agent, "task_done", object{"result": 1}, "result"},
		{agent, "task_done", object{"results": "x"}, "results"},
		{agent, "task_done", object{"result": strings.Repeat("x", inbox.MaxResult+1)}, "is the most"},
		{agent, "task_fail", object{}, "reason"},
		{agent, "task_fail", object{"reason": "x", "retry_after": "soon"}, "a time such as 90s"},
		{agent, "task_fail", object{"reason": "x", "retry_after": "-1h"}, "a time such as 90s"},
		{agent, "task_fail", object{"reason": "x", "retry_after": "9000h"}, "at most"},
		{agent, "task_extend", object{"for": "9000h"}, "from 0 to"},
		{agent, "enqueue", object{"prompt": " "}, "the text is empty"},
		{agent, "enqueue", object{"prompt": "x", "to": "../other"}, "there is no inbox"},
		{agent, "enqueue", object{"prompt": "x", "meta": object{"hops": 0}}, "cannot be named"},
		{agent, "enqueue", object{"prompt": "x", "meta": object{"prompt": "y"}}, "cannot be named"},
		{agent, "enqueue", object{"prompt": "x", "not_before": "tomorrow"}, "2026-01-02T15:04:05Z"},
		{agent, "nothing", object{}, "nothing"},
		{producer, "enqueue", object{"prompt": "x", "id": "a\nb"}, "cannot be printed"},
		{producer, "enqueue", object{"prompt": "x", "expires": "2001-01-01T00:00:00Z"}, "has passed"},
		{producer, "enqueue", object{"prompt": "x", "not_before": "2999-01-02T00:00:00Z", "expires": "2999-01-01T00:00:00Z"}, "comes before not_before"},
		{producer, "result", object{"id": "x"}, "there is no entry"},
		{producer, "result", object{"id": "x", "wait_ms": 25001}, "from 0 to 25000"},
		{producer, "cancel", object{"id": "--all"}, "--all"},
		{producer, "enqueue", object{"prompt": strings.Repeat("x", 64<<20)}, "is the most"},
		{operator, "peek", object{"count": 101}, "from 1 to 100"},
		{operator, "costs", object{"by": "meta.x"}, "it is day, entry or session"},
		{operator, "costs", object{"since": "--by"}, "--by"},
		{operator, "dead_letter_show", object{"letters": []string{}}, "1 to 100"},
		{operator, "dead_letter_purge", object{"letters": []string{"--all"}}, "--all"},
	} {
		_, failed := call(t, c.ClientSession, c.tool, c.args)
		assert.Contains(t, failed, c.says, "%s", c.tool)
	}
	in(t, path, func(tx *inbox.Tx) {
		assert.Nil(t, tx.InFlight().Verdict)
		_, err := tx.Next(inbox.Mark{})
		assert.Error(t, err)
	})
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(content))
}

// Two agents, each with an inbox of its own, hand work to each other.
func TestAgentsThatHandWorkOver(t *testing.T) {
	a, b := newBox(t, `{"id":"job","prompt":"begin"}`+"\n"), newBox(t, "")
	ca := client(t, flags{inbox: a, role: agent, others: []namedInbox{{"other", b}}})
	cb := client(t, flags{inbox: b, role: agent, others: []namedInbox{{"other", a}}})
	deliver(t, a)
	r, failed := call(t, ca, "enqueue", object{"prompt": "your turn", "id": "next", "to": "other", "meta": object{"team": "x"}})
	require.Empty(t, failed)
	assert.Equal(t, true, r["appended"])
	deliver(t, b)
	now, failed := call(t, cb, "task_current", object{})
	require.Empty(t, failed)
	assert.Equal(t, []any{"your turn", 1.0}, []any{now["prompt"], now["hops"]})
	assert.Equal(t, "job", now["metadata"].(object)["enqueued_by"])
	r, failed = call(t, cb, "enqueue", object{"prompt": "and yours", "to": "other"})
	require.Empty(t, failed)
	assert.Equal(t, true, r["appended"])
}

func TestARate(t *testing.T) {
	path := newBox(t, "one\n")
	deliver(t, path)
	c := client(t, flags{inbox: path, role: agent, rate: 1})
	_, failed := call(t, c, "enqueue", object{"prompt": "x"})
	require.Empty(t, failed)
	_, failed = call(t, c, "enqueue", object{"prompt": "y"})
	assert.Contains(t, failed, "the next one may come in 1h")
}

func TestAProducer(t *testing.T) {
	path := newBox(t, "")
	c := client(t, flags{inbox: path, role: producer})
	r, failed := call(t, c, "enqueue", object{"prompt": "x", "id": "job", "meta": object{"a": []int{1}}})
	require.Empty(t, failed)
	assert.Equal(t, []any{"job", true}, []any{r["id"], r["appended"]})
	r, failed = call(t, c, "enqueue", object{"prompt": "x", "id": "job"})
	require.Empty(t, failed)
	assert.Equal(t, []any{false, "queued"}, []any{r["appended"], r["found"]})
	for _, state := range []string{"queued", "in flight", "answered"} {
		r, failed = call(t, c, "result", object{"id": "job"})
		require.Empty(t, failed)
		assert.Equal(t, state, r["state"])
		_, failed = call(t, c, "enqueue", object{"prompt": "another text", "id": "job"})
		assert.Contains(t, failed, "is that of another entry", state)
		if state == "queued" {
			deliver(t, path)
		} else {
			in(t, path, func(tx *inbox.Tx) {
				if tx.InFlight() != nil {
					require.NoError(t, tx.Say(inbox.Verdict{Kind: inbox.VerdictDone, Text: "42"}))
					require.NoError(t, tx.Acknowledge("it is done"))
				}
			})
		}
	}
	assert.Equal(t, "42", r["answer"])
	_, failed = call(t, c, "enqueue", object{"prompt": "y", "id": "gone"})
	require.Empty(t, failed)
	_, failed = call(t, c, "cancel", object{"id": "gone"})
	require.Empty(t, failed)
	r, failed = call(t, c, "result", object{"id": "gone"})
	require.Empty(t, failed)
	assert.Equal(t, []any{"dead letter", "canceled"}, []any{r["state"], r["dead_letter"].(object)["reason"]})
}

// A result that is waited for comes as soon as it is there.
func TestAResultThatIsWaitedFor(t *testing.T) {
	path := newBox(t, `{"id":"job","prompt":"x"}`+"\n")
	c := client(t, flags{inbox: path, role: producer})
	deliver(t, path)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		time.Sleep(50 * time.Millisecond) // either order is right
		in(t, path, func(tx *inbox.Tx) { _ = tx.Acknowledge("here") })
	}()
	r, failed := call(t, c, "result", object{"id": "job", "wait_ms": maxWait})
	require.Empty(t, failed)
	assert.Equal(t, []any{"answered", "here"}, []any{r["state"], r["answer"]})
	<-answered
}

func TestAnOperator(t *testing.T) {
	path := newBox(t, "one\ntwo\n")
	c := client(t, flags{inbox: path, role: operator})
	line := func(tool string, args any) object {
		r, failed := call(t, c, tool, args)
		require.Empty(t, failed, tool)
		require.NotEmpty(t, r["lines"], tool)
		return r["lines"].([]any)[0].(object)
	}
	assert.EqualValues(t, 2, line("status", object{})["queued"])
	assert.Equal(t, "one", line("peek", object{"count": 1})["text"])
	line("pause", object{"reason": "--json $(touch x) \x1b[2J", "for": "30m"})
	assert.Contains(t, line("status", object{})["why"], "--json $(touch x)")
	_, failed := call(t, c, "resume", object{})
	require.Empty(t, failed)
	deliver(t, path)
	in(t, path, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
	letter := line("dead_letter_list", object{})["letter"].(string)
	assert.Equal(t, letter, line("dead_letter_show", object{"letters": []string{letter}})["letter"])
	line("dead_letter_requeue", object{"letters": []string{letter}})
	assert.EqualValues(t, 2, line("status", object{})["queued"])
	_, failed = call(t, c, "dead_letter_purge", object{"letters": []string{letter}})
	require.Empty(t, failed)
	_, failed = call(t, c, "costs", object{"by": "entry"})
	require.Empty(t, failed)

	r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: statusURI})
	require.NoError(t, err)
	var status struct{ Queued int }
	require.NoError(t, json.Unmarshal([]byte(r.Contents[0].Text), &status), "it is one object")
	assert.Equal(t, 2, status.Queued)
}

func TestTheLifeOfAnEntry(t *testing.T) {
	path := newBox(t, `{"id":"a b/c","prompt":"x"}`+"\n")
	c := client(t, flags{inbox: path, role: producer})
	r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: entryURI + "a%20b%2Fc"})
	require.NoError(t, err)
	assert.Contains(t, r.Contents[0].Text, `"event":"queued"`)
	_, err = c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: entryURI + "--all"})
	require.Error(t, err)
}

func TestAnInboxThatCannotBeServed(t *testing.T) {
	_, err := open(&flags{role: agent}, nil)
	require.Error(t, err)
	_, err = open(&flags{inbox: newBox(t, ""), role: agent, others: []namedInbox{{"x", t.TempDir()}}}, nil)
	require.ErrorContains(t, err, "--to x")
}
