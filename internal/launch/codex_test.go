package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/script"
)

var (
	codexHook  = regexp.MustCompile(`^hooks\.(\w+)=\[\{hooks=\[\{type="command",command=("(?:[^"\\]|\\.)*"),timeout=\d+\}\]\}\]$`)
	codexState = regexp.MustCompile(`"([^"]+)"=\{trusted_hash="([^"]+)"\}`)
)

// codexStandIn is a stand-in for Codex: it lists the hooks that its arguments wire, and runs
// one that they trust. It notes its arguments, and what it was asked.
func codexStandIn() {
	args := os.Args[1:]
	lines, trusted := map[string]string{}, map[string]string{}
	for i, arg := range args {
		if arg != "-c" {
			continue
		}
		if m := codexHook.FindStringSubmatch(args[i+1]); m != nil {
			var line string
			_ = json.Unmarshal([]byte(m[2]), &line) // a string of JSON, by the pattern
			lines[m[1]] = line
		}
		for _, m := range codexState.FindAllStringSubmatch(args[i+1], -1) {
			trusted[m[1]] = m[2]
		}
	}
	if slices.Contains(args, "app-server") {
		serveHooks(lines)
		return
	}
	note("arguments", strings.Join(args, " "))
	line := lines["Stop"]
	if trusted["/<session-flags>/config.toml:Stop:0:0"] != codexSum(line) || slices.Contains(args, "resume") {
		fmt.Println("ERROR: it does not start\ntokens used\n0")
		os.Exit(1)
	}
	a := &agent.Agent{Hook: []string{"sh", "-c", line}, Answer: func(text string) string {
		note("asked", text)
		if verb, what, _ := strings.Cut(text, " "); verb == "hang" {
			note(what, "hangs")
			script.Forever()
		}
		return "did " + text
	}}
	if os.Getenv("CUT") != "" { // as Codex cuts off the hook of a session's end
		a.Sits = func() { os.Exit(0) }
	}
	if err := a.Run(context.Background(), args[len(args)-1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func codexSum(line string) string { return fmt.Sprintf("sha256:%d", len(line)) }

// serveHooks answers as Codex's server does.
func serveHooks(lines map[string]string) {
	note("served", strings.Join(os.Args[1:], " "))
	hooks := []map[string]any{}
	for event, line := range lines {
		if os.Getenv("DISABLED") != "" {
			break
		}
		hooks = append(hooks, map[string]any{
			"key": "/<session-flags>/config.toml:" + event + ":0:0", "source": "sessionFlags", "command": line, "currentHash": codexSum(line),
		})
	}
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		var q struct {
			ID     int
			Method string
		}
		if json.Unmarshal(requests.Bytes(), &q) != nil || q.ID == 0 {
			continue
		}
		var result any = map[string]any{}
		if q.Method == "hooks/list" {
			result = map[string]any{"data": []any{map[string]any{"hooks": hooks}}}
		}
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"id": q.ID, "result": result}) // whoever asked may be gone
	}
}
