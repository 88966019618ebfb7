package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"
)

// InTerminal is the stand-in as a program: an interactive session in the terminal
// that it is started in. It takes the hook from --settings, and its first prompt is
// the first argument that is not a flag. When the stop is approved it sits at its
// prompt, where a hook with --rewake wakes it, until a signal ends it; then it fires
// SessionEnd. A signal during a turn ends it at once. InTerminal returns the exit
// status.
func InTerminal(args []string, answer func(text string) string) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGHUP)
	var answers atomic.Bool
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- interact(args, quit, func(text string) string {
			answers.Store(true)
			defer answers.Store(false)
			return answer(text)
		})
	}()
	select {
	case <-ended:
		close(quit)
		if !answers.Load() {
			<-done
		}
		return 128 + int(syscall.SIGTERM)
	case err := <-done:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

func interact(args []string, quit <-chan struct{}, answer func(string) string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return errors.New("agent: there is no terminal")
	}
	c := parse(args)
	hook, err := wired(c.settings)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a := &Agent{Hook: hook, Answer: answer, Sits: func() { <-quit }, SessionID: c.resume, Env: append(os.Environ(),
		"CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR="+dir)}
	if err := a.keepTranscript(); err != nil {
		return err
	}
	if slices.Contains(hook, "--rewake") {
		return a.RunWoken(context.Background(), c.prompt, quit)
	}
	return a.Run(context.Background(), c.prompt)
}

// call is the parsed arguments.
type call struct{ settings, resume, sessionID, prompt string }

func parse(args []string) (c call) {
	values := map[string]*string{"--settings": &c.settings, "--resume": &c.resume, "--session-id": &c.sessionID}
	for len(args) > 0 {
		value := values[args[0]]
		switch {
		case value != nil && len(args) > 1:
			*value, args = args[1], args[1:]
		case !strings.HasPrefix(args[0], "-") && c.prompt == "":
			c.prompt = args[0]
		}
		args = args[1:]
	}
	return c
}

// wired returns the command of the Stop hook in a settings file.
func wired(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return nil, fmt.Errorf("agent: read %s: %w", path, err)
	}
	if os.Getenv(NoHooksVariable) != "" {
		return []string{"true"}, nil
	}
	for _, group := range settings.Hooks["Stop"] {
		for _, h := range group.Hooks {
			return append([]string{h.Command}, h.Args...), nil
		}
	}
	return nil, fmt.Errorf("agent: %s wires no hook of Stop", path)
}
