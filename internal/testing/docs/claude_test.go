package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/testing/agent"
)

// claude is a stand-in for Claude Code. With -p it works as the project's settings wire it;
// otherwise in a terminal, as the launcher starts it.
func claude(args []string) int {
	if !slices.Contains(args, "-p") {
		return agent.InTerminal(args, answer)
	}
	hook, err := wired(".claude/settings.json")
	if err == nil {
		a := agent.Agent{
			Hook: hook, Answer: answer, Transcript: filepath.Join(os.Getenv("HOME"), "transcript.jsonl"),
			Env:  append(os.Environ(), "CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=sdk-cli"),
			Turn: func(text, reply string) { fmt.Printf("%s\n%s\n", text, reply) },
		}
		err = a.Run(context.Background(), args[len(args)-1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// answer is in one line, so that a log's line shows all of it. What is announced to an
// idle session ends with the entry, behind an empty line.
func answer(text string) string {
	if announced, found := strings.CutSuffix(text, "</system-reminder>"); found {
		text = announced[strings.LastIndex(announced, "\n\n")+1:]
	}
	return "This answers " + strings.Join(strings.Fields(text), " ")
}

// wired is the Stop hook of a settings file.
func wired(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var settings struct {
		Hooks struct {
			Stop []struct {
				Hooks []struct {
					Command string
					Args    []string
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, group := range settings.Hooks.Stop {
		for _, h := range group.Hooks {
			return append([]string{h.Command}, h.Args...), nil
		}
	}
	return nil, fmt.Errorf("%s wires no hook of Stop", path)
}
