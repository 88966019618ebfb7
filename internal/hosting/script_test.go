package hosting

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/internal/hook"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the commands where a script runs them by their name.
func TestMain(m *testing.M) {
	script.Main(m, map[string]func(){
		"heartbeat-host": Main,
		"heartbeat-stop": hook.Main,
		guardian.Name:    Main,
		"claude":         client,
	})
}

// client is a stand-in for Claude Code. The words of a text say what it does.
func client() {
	os.Exit(agent.InPrint(os.Args[1:], func(t agent.Printed) string {
		for _, word := range strings.Fields(t.Text) {
			switch name, value, _ := strings.Cut(word, ":"); name {
			case "exit":
				os.Exit(7)
			case "wait":
				_, _ = os.ReadFile(value) // a FIFO
			case "hang":
				script.Forever()
			}
		}
		return "did " + t.Text
	}))
}

// TestScripts runs the scripts in testdata/script, with the commands of package script
// and these, about a guild that takes all reports:
//
//	config FILE ID PROMPT [MEMBER=JSON...]   a configuration; JSON may be empty: no such member
//	reported ID STATUS                       waits until the guild was told of that end
//	nobody FILE                              waits until the process group in a JSON line is gone
//	slay ID                                  kills a session's guardian and then its host
func TestScripts(t *testing.T) {
	params := script.Params(func(env *testscript.Env) error {
		g, err := guild.Open(guild.Options{})
		if err != nil {
			return err
		}
		server := httptest.NewServer(g)
		env.Defer(func() {
			_ = g.Close()
			server.Close()
		})
		env.Values["guild"] = g
		env.Setenv("GUILD", server.URL)
		env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
		env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
		env.Setenv(agent.TranscriptsVariable, filepath.Join(env.WorkDir, "transcripts"))
		for _, dir := range []string{"home", "state", "transcripts", "project", "db"} {
			if err := os.Mkdir(filepath.Join(env.WorkDir, dir), 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	params.Cmds["config"] = cmdConfig
	params.Cmds["reported"] = cmdReported
	params.Cmds["nobody"] = cmdNobody
	params.Cmds["slay"] = cmdSlay
	testscript.Run(t, params)
}

func cmdConfig(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: config FILE ID PROMPT [MEMBER=JSON...]")
	}
	c := map[string]any{
		"sessionId": args[1], "guildToolUrl": ts.Getenv("GUILD"), "dbPath": ts.MkAbs("db/nexus.db"), "logDir": ts.MkAbs("logs"),
		"claudeArgs": []string{}, "cwd": ts.MkAbs("project"), "env": map[string]string{}, "prompt": args[2], "tools": []string{},
		"startedAt": "2026-05-01T12:00:00Z", "provider": "claude-code",
	}
	for _, member := range args[3:] {
		name, value, _ := strings.Cut(member, "=")
		if value == "" {
			delete(c, name)
		} else {
			c[name] = json.RawMessage(value)
		}
	}
	b, err := json.Marshal(c)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
}

func cmdReported(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: reported ID STATUS")
	}
	g := ts.Value("guild").(*guild.Guild)
	last := ""
	script.Poll(ts, "the guild to be told of the end of "+args[0], func() bool {
		s, _ := g.Session(args[0])
		last = s.Status
		return s.Record.Applied > 0
	})
	if last != args[1] {
		s, _ := g.Session(args[0])
		ts.Fatalf("the guild was told %s, want %s: %s", last, args[1], s.Report["error"])
	}
}

func cmdNobody(ts *testscript.TestScript, neg bool, args []string) {
	var up struct{ PID int }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &up))
	script.Poll(ts, fmt.Sprintf("process %d to end", up.PID), func() bool {
		return syscall.Kill(-up.PID, 0) == syscall.ESRCH
	})
}

func cmdSlay(ts *testscript.TestScript, neg bool, args []string) {
	f, err := folder.At(ts.MkAbs("db/nexus.db"), args[0])
	ts.Check(err)
	s, err := f.Read()
	ts.Check(err)
	for _, p := range []*folder.Process{s.Guardian, s.Host} {
		ts.Check(syscall.Kill(p.PID, syscall.SIGKILL))
	}
	script.Poll(ts, "the end of the host of "+args[0], func() bool { // it frees its lock a moment before it is gone
		alive, _ := s.Host.Alive()
		return !alive && f.Holder() == 0
	})
}
