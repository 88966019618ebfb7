package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/guild"
)

// tools gives the session two tools of the guild.
func (r *rig) tools() {
	for _, name := range []string{"writ-list", "writ-post"} {
		method := map[string]string{"writ-list": "GET", "writ-post": "POST"}[name]
		r.guild.AddTool(guild.Tool{Name: name, Method: method})
		r.Config.Tools = append(r.Config.Tools, config.Tool{Name: name, Method: method, Params: []byte("{}")})
	}
	r.guild.Expect("ses-1", "writ-list", "writ-post")
}

// A session whose tools fail says so, and has failed if it needs them.
func TestToolsInTheReport(t *testing.T) {
	const (
		unlisted = "the client never asked for the list of tools: none of the 2 configured tools was available to it"
		all      = "all 3 calls of the guild's tools failed, at last writ-list: HTTP 500: {\"error\":\"fault 500\"}"
		some     = "1 of 3 calls of the guild's tools failed, at last writ-list: HTTP 500: {\"error\":\"fault 500\"}"
		answered = " (--require-tools); 1 of 1 prompt answered"
	)
	for name, c := range map[string]struct {
		prompt   string
		faults   int
		required bool
		flag     bool
		error    string
		warning  string
		failed   float64
	}{
		"all went well":           {prompt: "call:writ-post call:writ-list,again", required: true},
		"some failed":             {prompt: "call:writ-list call:writ-post,again", faults: 1, required: true, warning: some, failed: 1},
		"all failed":              {prompt: "call:writ-post call:writ-list,again", faults: -1, warning: all, failed: 3},
		"all failed, required":    {prompt: "call:writ-post call:writ-list,again", faults: -1, required: true, error: all + answered, warning: all, failed: 3},
		"all failed, by the flag": {prompt: "call:writ-post call:writ-list,again", faults: -1, flag: true, error: all + answered, warning: all, failed: 3},
		"none called, required":   {prompt: "list", required: true},
		"never listed":            {prompt: "hello", warning: unlisted},
		"never listed, required": {prompt: "hello", required: true, warning: unlisted,
			error: "the client never asked for the list of the guild's tools" + answered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.prompt)
			r.tools()
			r.Config.RequireTools, r.RequireTools = c.required, c.flag
			if c.faults != 0 {
				r.guild.Break(guild.Fault{On: "tool", Do: guild.Answer, Status: 500, Times: c.faults})
			}
			_, o := r.run()
			report := r.report()
			want := map[bool]folder.Status{true: folder.Completed, false: folder.Failed}[c.error == ""]
			assert.Equal(t, string(want), report["status"])
			assert.Equal(t, c.error, o.Error)
			warnings, _ := report["warnings"].([]any)
			warnings = slices.DeleteFunc(warnings, func(text any) bool { // the machine's disk stood still at the end
				return strings.HasPrefix(text.(string), "the transcript cannot be written to the guild's table")
			})
			assert.Equal(t, c.warning, strings.TrimSuffix(fmt.Sprintln(warnings...), "\n"))
			tools := report["tools"].(map[string]any)
			assert.Equal(t, 2.0, tools["configured"])
			assert.Equal(t, c.failed, tools["failed"])
			r.isClean()
		})
	}
}

// Each tool has its figures, also where the host was killed.
func TestEachTool(t *testing.T) {
	for name, kill := range map[string]string{"host": "", "finisher": "settled"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "call:writ-post call:nothing call:writ-list")
			r.tools()
			r.guild.Break(guild.Fault{On: "tool", Do: guild.Answer, Status: 500, Skip: 1})
			cmd := r.command()
			cmd.Env = append(cmd.Env, killVariable+"="+kill)
			_ = cmd.Run() // it may be killed
			r.until("the session is reported", func() bool { s, _ := r.guild.Session("ses-1"); return s.Record.Applied == 1 })
			report := r.report()
			assert.Equal(t, "completed", report["status"])
			assert.Equal(t, map[string]any{"configured": 2.0, "listed": true, "calls": 3.0, "failed": 2.0, "each": []any{
				map[string]any{"name": "(no such tool)", "calls": 1.0, "failed": 1.0, "lastError": `there is no tool "nothing" in this session`},
				map[string]any{"name": "writ-list", "calls": 1.0, "failed": 1.0, "lastError": `HTTP 500: {"error":"fault 500"}`},
				map[string]any{"name": "writ-post", "calls": 1.0, "failed": 0.0},
			}}, report["tools"])
			r.alone()
		})
	}
}
