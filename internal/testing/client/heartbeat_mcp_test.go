package client

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/model"
)

// steps are what a model does in the nth turn that a tag began, one after the other.
type steps func(tag string, nth int) []model.Reply

// script follows the steps of the turn that was begun last.
func (s steps) script() model.Script {
	var mu sync.Mutex
	var left []model.Reply
	begun := map[string]int{}
	return func(r model.Request) model.Reply {
		mu.Lock()
		defer mu.Unlock()
		if len(r.ToolResults) == 0 {
			tag := lastTag(r)
			begun[tag]++
			left = s(tag, begun[tag])
		}
		if len(left) == 0 {
			return model.Text("there is nothing left to do")
		}
		next := left[0]
		left = left[1:]
		return next
	}
}

// lookAt is an entry about a tag.
func lookAt(tag string) entry {
	text := "please look at " + tag
	return entry{tag: tag, line: text, text: text}
}

func tool(name string, input map[string]any) model.Reply {
	return model.Tool("mcp__heartbeat__"+name, input)
}

// outcomes are the results and dead letters of an inbox, by the text of their entries.
func (r *rig) outcomes() (results map[string]inbox.Result, letters map[string]inbox.DeadLetter) {
	r.t.Helper()
	results, letters = map[string]inbox.Result{}, map[string]inbox.DeadLetter{}
	for _, line := range readLines(r.t, r.path(".results.jsonl")) {
		var one inbox.Result
		require.NoError(r.t, json.Unmarshal([]byte(line), &one))
		results[one.Prompt] = one
	}
	for _, line := range readLines(r.t, r.path(".dead-letter.jsonl")) {
		l, _, ok := inbox.ParseLetter([]byte(line))
		require.True(r.t, ok)
		letters[l.Text()] = l.DeadLetter
	}
	return results, letters
}

func readLines(t testing.TB, path string) []string {
	text, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

// An agent says by its tools what becomes of its entries, and sends one itself.
func TestHeartbeatTools(t *testing.T) {
	r := newRigWith(t, steps(func(tag string, nth int) []model.Reply {
		switch {
		case tag == "[e1]":
			return []model.Reply{
				tool("task_current", nil), tool("task_extend", map[string]any{"for": "1m", "progress": "half"}),
				tool("task_done", map[string]any{"result": `{"answer":42}`}), model.Text("I am done"),
			}
		case tag == "[e2]":
			return []model.Reply{tool("task_reject", map[string]any{"reason": "it makes no sense"}), model.Text("I cannot")}
		case tag == "[e3]" && nth == 1:
			return []model.Reply{tool("task_fail", map[string]any{"reason": "the disk is full"}), model.Text("not now")}
		case tag == "[e3]":
			return []model.Reply{tool("enqueue", map[string]any{"prompt": "please look at [e9]", "id": "sent"}), model.Text("sent it")}
		}
		return []model.Reply{own(tag, nth)}
	}).script())
	r.add(lookAt("[e1]"), lookAt("[e2]"), lookAt("[e3]"))
	w, _ := r.managing(minutes(t), "--mcp").wait()
	assert.Equal(t, worked{Reason: "drained", Exit: 3, Answered: 3, Redelivered: 1, DeadLettered: 1, Sessions: 1}, w)
	results, letters := r.outcomes()
	done := results["please look at [e1]"]
	assert.Equal(t, []any{`{"answer":42}`, true, "I am done"}, []any{done.Result, done.Said, done.Reply})
	assert.Equal(t, []any{2, "sent it"}, []any{results["please look at [e3]"].Attempt, results["please look at [e3]"].Reply})
	sent := results["please look at [e9]"]
	assert.Equal(t, []any{"sent", "1"}, []any{sent.ID, string(sent.Metadata["hops"])})
	rejected := letters["please look at [e2]"]
	require.NotNil(t, rejected.Failure)
	assert.Equal(t, []any{inbox.ReasonRejected, "it makes no sense"}, []any{rejected.Reason, rejected.Failure.Message})
}

// A session that the agent starts with a command of its own works on no entry: what it says is
// said of none, whatever its client's file is called, and also by a process that left it.
func TestHeartbeatToolsOfASessionBelow(t *testing.T) {
	for name, command := range map[string]string{
		"of the same name":      `"$CLAUDE"`,
		"of another name":       `ln -sf "$CLAUDE" ./2.1 && ./2.1`,
		"in the background":     `nohup setsid "$CLAUDE"`,
		"with the session's id": `"$CLAUDE" --resume "$CLAUDE_CODE_SESSION_ID"`,
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan string, 1)
			r := newRigWith(t, func(q model.Request) model.Reply {
				results := strings.Join(q.ToolResults, "\n")
				switch tag := lastTag(q); {
				case tag == "[n1]" && results == "":
					return tool("task_done", map[string]any{"result": "stolen"})
				case tag == "[e1]" && results == "":
					return model.Tool("Bash", map[string]any{"command": command})
				case results == "":
					return own(tag, 1)
				case strings.Contains(results, "the session below is over"):
					return model.Text("answered by its own")
				}
				said <- results
				return model.Text("the session below is over")
			})
			config := filepath.Join(r.Home, "mcp.json")
			text, err := exec.Command(filepath.Join(filepath.Dir(r.stop), "heartbeat"), "mcp", "print-config", "--inbox", r.inbox).Output()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(config, text, 0o600))
			tools := []string{"--mcp-config=" + config, "--strict-mcp-config", "--allowedTools=mcp__heartbeat,Bash"}
			command += ` -p "say that it is done [n1]" ` + strings.Join(tools, " ") + " </dev/null 2>&1"
			r.install().add(lookAt("[e1]"))
			r.drain(minutes(t), prompt(1), Options{Settings: r.settings, Args: tools, Env: []string{"CLAUDE=" + r.binary}})
			assert.Contains(t, <-said, "is another session's")
			results, letters := r.outcomes()
			assert.Empty(t, letters)
			done := results["please look at [e1]"]
			assert.Equal(t, []any{"", false, "answered by its own"}, []any{done.Result, done.Said, done.Reply})
		})
	}
}

// Two agents, each with an inbox of its own, hand work to each other.
func TestHeartbeatToolsBetweenTwo(t *testing.T) {
	plan := steps(func(tag string, nth int) []model.Reply {
		switch tag {
		case "[e1]":
			return []model.Reply{tool("enqueue", map[string]any{"to": "other", "prompt": "please look at [e2]"}), model.Text("sent there")}
		case "[e2]":
			return []model.Reply{tool("enqueue", map[string]any{"to": "other", "prompt": "please look at [e3]"}), model.Text("sent back")}
		}
		return []model.Reply{own(tag, nth)}
	})
	one, two := newRigWith(t, plan.script()), newRigWith(t, plan.script())
	one.add(lookAt("[e1]"))
	for _, pair := range [][2]*rig{{one, two}, {two, one}, {one, two}} {
		r, other := pair[0], pair[1]
		config, err := exec.Command(filepath.Join(filepath.Dir(r.stop), "heartbeat"), "mcp", "print-config", "--inbox", r.inbox, "--to", "other="+other.inbox).Output()
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(file, config, 0o600))
		w, _ := r.managingWith(minutes(t), nil, "--mcp-config="+file, "--allowedTools=mcp__heartbeat").wait()
		assert.Equal(t, worked{Reason: "drained", Answered: 1, Sessions: 1}, w)
	}
	first, _ := one.outcomes()
	second, _ := two.outcomes()
	assert.Equal(t, "1", string(second["please look at [e2]"].Metadata["hops"]))
	assert.Equal(t, "2", string(first["please look at [e3]"].Metadata["hops"]))
}

// saysDone has the model say by the tool NAME that its entry is done.
func saysDone(name string) steps {
	return func(tag string, nth int) []model.Reply {
		if tag != "[e1]" {
			return []model.Reply{own(tag, nth)}
		}
		return []model.Reply{model.Tool(name, map[string]any{"result": "42"}), model.Text("I am done")}
	}
}

func (r *rig) saidDone() {
	r.t.Helper()
	results, letters := r.outcomes()
	assert.Empty(r.t, letters)
	done := results["please look at [e1]"]
	assert.Equal(r.t, []any{"42", true, "I am done"}, []any{done.Result, done.Said, done.Reply})
}

// What install --mcp writes gives a session its tools, without a question.
func TestHeartbeatToolsInstalled(t *testing.T) {
	t.Run("-p", func(t *testing.T) {
		r := newRigWith(t, saysDone("mcp__heartbeat__task_done").script())
		r.installIn(r.projectSettings(), "--mcp")
		r.add(lookAt("[e1]"))
		r.drain(minutes(t), prompt(1), Options{})
		r.saidDone()
	})
	t.Run("at a terminal", func(t *testing.T) {
		ctx := minutes(t)
		r := newRigWith(t, saysDone("mcp__heartbeat__task_done").script())
		r.installIn(r.projectSettings(), "--mcp", "--rewake")
		r.add(lookAt("[e1]"))
		s := r.attended(ctx, Options{})
		r.answered(ctx, 1)
		r.saidDone()
		r.quit(ctx, s)
	})
}

// call is a tool that the model calls, and a part of what it is told.
type call struct {
	tool  string
	input map[string]any
	says  string
}

// calls has a session with the tools of a role call one after the other, and checks what
// the client passes on.
func (r *rig) calls(role string, all ...call) {
	r.t.Helper()
	config := filepath.Join(r.Home, role+".mcp.json")
	cmd := exec.Command(filepath.Join(filepath.Dir(r.stop), "heartbeat"), "mcp", "print-config", "--inbox", r.inbox, "--role", role)
	text, err := cmd.Output()
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(config, text, 0o600))
	before := len(r.Model.MainRequests())
	r.drain(minutes(r.t), "call "+role, Options{Args: []string{"--mcp-config=" + config, "--strict-mcp-config", "--allowedTools=mcp__heartbeat"}})
	asked := r.Model.MainRequests()[before:]
	require.Len(r.t, asked, len(all)+1)
	for i, one := range all {
		assert.Contains(r.t, strings.Join(asked[i+1].ToolResults, "\n"), one.says, one.tool)
	}
}

// calling is a model that calls them.
func calling(roles map[string][]call) model.Script {
	var mu sync.Mutex
	var left []call
	return func(q model.Request) model.Reply {
		mu.Lock()
		defer mu.Unlock()
		if role, begins := strings.CutPrefix(q.UserText, "call "); begins && len(q.ToolResults) == 0 {
			left = roles[role]
		}
		if len(left) == 0 {
			return model.Text("all were called")
		}
		next := left[0]
		left = left[1:]
		return tool(next.tool, next.input)
	}
}

// The client calls every tool of producers and operators.
func TestHeartbeatToolsOfOtherRoles(t *testing.T) {
	roles := map[string][]call{
		"producer": {
			{"enqueue", map[string]any{"prompt": "please look at [e1]", "id": "one", "meta": map[string]any{"team": "ops"}}, `"appended":true`},
			{"enqueue", map[string]any{"prompt": "please look at [e1]", "id": "one"}, `"appended":false`},
			{"enqueue", map[string]any{"prompt": "something else", "id": "one"}, "that of another entry"},
			{"result", map[string]any{"id": "one"}, `"queued"`},
			{"enqueue", map[string]any{"prompt": "never mind", "id": "two"}, `"appended":true`},
			{"cancel", map[string]any{"id": "two"}, "two"},
			{"result", map[string]any{"id": "two", "wait_ms": 10}, "two"},
		},
		"operator": {
			{"status", map[string]any{}, "inbox.jsonl"},
			{"peek", map[string]any{"count": 3}, "please look at [e1]"},
			{"costs", map[string]any{}, "{"},
			{"pause", map[string]any{"reason": "the deploy"}, "the deploy"},
			{"resume", map[string]any{}, "{"},
			{"dead_letter_list", map[string]any{}, "lines"},
			{"dead_letter_show", map[string]any{"letters": []string{"two"}}, "never mind"},
			{"dead_letter_requeue", map[string]any{"letters": []string{"two"}}, "two"},
			{"dead_letter_purge", map[string]any{"letters": []string{"two"}}, "{"},
		},
	}
	r := newRigWith(t, calling(roles))
	r.calls("producer", roles["producer"]...)
	r.calls("operator", roles["operator"]...)
}
