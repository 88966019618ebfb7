package client

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
)

// guildOf are two tools that read and one that writes.
var guildOf = []guild.Tool{{Name: "writ-list", Method: "GET"}, {Name: "writ-link-kinds", Method: "POST"}, {Name: "signal", Method: "POST"}}

// A session with three prompts and tools, whose guild is killed twice: between a tool
// and the next, and right after it applied the terminal report, before it said so.
func TestHostedLife(t *testing.T) {
	var h *house
	sent, broken := make(chan struct{}), make(chan struct{})
	restarted := make(chan error, 1)
	h = newHouse(t, func(r model.Request) model.Reply {
		tag, answered := lastTag(r), len(r.ToolResults) > 0
		switch {
		case tag == "[e1]":
			<-sent
			return model.Tool(guildTools+"writ-list", map[string]any{"q": "one"})
		case tag == "[e2]":
			h.guild.Kill()
			go func() { // the proxy meanwhile waits for the guild
				time.Sleep(1500 * time.Millisecond)
				restarted <- h.guild.Start()
			}()
			return model.Tool(guildTools+"writ-link-kinds", map[string]any{"q": "two"})
		case tag == "[e3]":
			select {
			case <-broken:
			case <-t.Context().Done():
			}
			return model.Tool(guildTools+"signal", map[string]any{"q": "three"})
		case answered:
			return model.Text("done " + strings.Join(r.ToolResults, " "))
		}
		return model.Text("what?")
	})
	config := h.seed("ses-life", "first [e1]", guildOf...)
	u := h.start(config)
	assert.Equal(t, "ses-life", u.SessionID)
	assert.Equal(t, u.PID, u.PGID)
	assert.Equal(t, folder.Running, h.state("ses-life").Status)
	h.send("ses-life", "second [e2]")
	h.send("ses-life", "third [e3]")
	close(sent)
	ctx := minutes(t)
	select {
	case err := <-restarted:
		require.NoError(t, err)
	case <-ctx.Done():
		require.Fail(t, "the second prompt never came")
	}
	require.NoError(t, h.guild.Break(guild.Fault{On: "record", Step: guild.WhenApplied, Do: guild.Die}))
	close(broken)
	h.guild.Wait()
	require.NoError(t, h.guild.Start())

	s := h.await(ctx, "ses-life")
	assert.Equal(t, "completed", s.Status)
	assert.Equal(t, 1, s.Record.Applied)
	assert.Equal(t, 1, s.Record.Repeated, "the guild died before it had answered")
	assert.Equal(t, 1, s.Running.Applied)
	assert.Equal(t, u.PGID, s.PGID)
	assert.Equal(t, map[string]int{"writ-list": 1, "writ-link-kinds": 1, "signal": 1}, s.Calls)

	want := []string{"{\n  \"q\": \"one\"\n}", "{\n  \"q\": \"two\"\n}", "{\n  \"q\": \"three\"\n}"}
	assert.Equal(t, want, h.modelGot())
	texts, results := h.agrees(s)
	assert.Equal(t, want, results)
	assert.Equal(t, []string{"done " + want[0], "done " + want[1], "done " + want[2]}, texts)

	assert.Equal(t, 0.0, reported(s, "exitCode"))
	assert.Equal(t, texts[2], reported(s, "output"))
	entries, _ := reported(s, "entries").(map[string]any)
	assert.Equal(t, 3.0, entries["answered"])
	types, _ := h.stored("ses-life")
	assert.Contains(t, types, "result")
	_, messages := h.transcript("ses-life")
	assert.Equal(t, messages[0].Session, reported(s, "providerSessionId"))
	assert.Empty(t, h.letters())
	h.isClean("ses-life")
}

// run takes the place of the babysitter: config on stdin, nothing on stdout, and exit
// status 0 once the session was reported, whatever became of it.
func TestHostedRun(t *testing.T) {
	for _, c := range []struct {
		name, status string
		reply        model.Reply
	}{
		{"answered", "completed", model.Text("done")},
		{"refused", "failed", model.Error(400, "invalid_request_error", "bad")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, func(model.Request) model.Reply { return c.reply })
			config := h.seed("ses-run", "go", guildOf...)
			cmd := h.host("run")
			cmd.Env = append(cmd.Env, "PATH="+h.onPath()+":/usr/bin:/bin")
			cmd.Stdin = strings.NewReader(asJSON(config))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Empty(t, string(out))
			s := h.known("ses-run")
			assert.Equal(t, c.status, s.Status)
			assert.Equal(t, guild.Count{Applied: 1}, s.Record)
			assert.Equal(t, guild.Count{Applied: 1}, s.Running)
			h.agrees(s)
			h.isClean("ses-run")
		})
	}
}
