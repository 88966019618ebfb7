package session_test

import (
	"database/sql"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/long"
)

// fault is something that goes wrong in a session whose prompt may be answered all the same.
type fault struct {
	name string
	make func(t *testing.T, r *rig) (over func()) // nil for what stays
	told func(report map[string]any) bool         // by the report, in a figure or a sentence of its own
}

var faults = []fault{
	{"tools fail", func(_ *testing.T, r *rig) func() {
		r.guild.Break(guild.Fault{On: "tool", Do: guild.Answer, Status: 500, Times: -1})
		return prompts(" call:writ-post,again")(nil, r)
	}, func(report map[string]any) bool {
		return figure(report, "tools", "failed") == 2 && warned(report, "all 2 calls")
	}},
	{"a tool is cut off", func(_ *testing.T, r *rig) func() {
		r.guild.Break(guild.Fault{On: "tool", Step: guild.WhenApplied, Do: guild.Reset})
		return prompts(" call:writ-post")(nil, r)
	}, func(report map[string]any) bool {
		return figure(report, "tools", "failed") > 0 && warned(report, "may have carried it out")
	}},
	{"no such tool", prompts(" call:nothing"),
		func(report map[string]any) bool {
			return figure(report, "tools", "failed") > 0 && warned(report, "tools failed")
		}},
	{"no tools", prompts(" nolist"),
		func(report map[string]any) bool { return warned(report, "never asked for the list of tools") }},
	{"no hooks", func(_ *testing.T, r *rig) func() { r.Config.Env[agent.NoHooksVariable] = "1"; return nil },
		func(report map[string]any) bool { return warned(report, "no hook of the client ran") }},
	{"no messages", prompts(" print:garbage"),
		func(report map[string]any) bool { return warned(report, "1 lines are no messages") }},
	{"locked", func(t *testing.T, r *rig) func() {
		db, err := sql.Open("sqlite", r.Config.DBPath)
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		for _, q := range []string{"CREATE TABLE other (x)", "BEGIN EXCLUSIVE", "INSERT INTO other VALUES (1)"} {
			_, err = db.Exec(q)
			require.NoError(t, err)
		}
		return func() { _ = db.Close() } // its transaction ends with it
	}, func(report map[string]any) bool {
		return figure(report, "waiting") > 0 && warned(report, "cannot be written to the guild's table")
	}},
	{"an unread file", prompts(strings.Repeat(" x", 1<<20)),
		func(report map[string]any) bool {
			return report["status"] == "failed" && figure(report, "entries", "unread") == 1
		}},
	{"a bad end", prompts(" exit:3"),
		func(report map[string]any) bool { return report["status"] == "failed" && report["exitCode"] == 3.0 }},
}

// prompts adds what the client does.
func prompts(text string) func(*testing.T, *rig) func() {
	return func(_ *testing.T, r *rig) func() { r.Config.Prompt += text; return nil }
}

// figure is a number in a report, 0 if it is not there.
func figure(report map[string]any, names ...string) float64 {
	for _, name := range names[:len(names)-1] {
		report, _ = report[name].(map[string]any)
	}
	n, _ := report[names[len(names)-1]].(float64)
	return n
}

func warned(report map[string]any, text string) bool {
	all, _ := report["warnings"].([]any)
	for _, w := range all {
		if strings.Contains(w.(string), text) {
			return true
		}
	}
	return false
}

// A session in which something went wrong never reads as one that just completed, and each
// thing that went wrong is told.
func TestFaultySessions(t *testing.T) {
	for seed := range uint64(long.Rounds(6, 20)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 28))
			r := newRig(t, "hello")
			r.Config.Env = map[string]string{}
			r.tools()
			var made []fault
			for _, i := range random.Perm(len(faults))[:1+random.IntN(2)] {
				made = append(made, faults[i])
			}
			made = compatible(made)
			if random.IntN(2) == 0 && !strings.Contains(names(made), "no tools") {
				r.Config.Prompt = "list hello"
			}
			var over []func()
			for _, f := range made {
				if o := f.make(t, r); o != nil {
					over = append(over, o)
					t.Cleanup(o)
				}
			}
			cmd := r.command()
			if random.IntN(3) == 0 {
				cmd.Env = append(cmd.Env, killVariable+"="+pick(random, "ended", "settled", "decided"))
			}
			_ = cmd.Run() // it may be killed
			r.until("the session is reported", func() bool { s, _ := r.guild.Session("ses-1"); return s.Record.Applied == 1 })
			for _, o := range over {
				o() // the guardian waits for it
			}
			r.alone()
			report := r.report()
			for _, f := range made {
				assert.True(t, f.told(report), "%s: %v", f.name, report)
			}
			assert.False(t, report["status"] == "completed" && len(warnings(report)) == 0, "%s: %v", names(made), report)
		})
	}
}

func warnings(report map[string]any) []any {
	all, _ := report["warnings"].([]any)
	return all
}

func names(made []fault) string {
	var all []string
	for _, f := range made {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}

// compatible leaves out what another fault would keep from happening: two that are about the
// tools, or one beside a turn that does not read its text or come to its end. That has nothing
// to store either.
func compatible(made []fault) []fault {
	const tools, short = "tools fail, a tool is cut off, no such tool, no tools", "an unread file, a bad end"
	is := func(i int, of string) bool { return strings.Contains(of, made[i].name) }
	if len(made) == 2 && (names(made) == "locked, a bad end" || names(made) == "a bad end, locked" || is(0, tools) && is(1, tools) || is(0, short) && !is(1, "locked") || is(1, short) && !is(0, "locked")) {
		return made[:1]
	}
	return made
}
