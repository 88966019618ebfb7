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
	"syscall"

	"golang.org/x/term"
)

// InTerminal is the stand-in as a command of its own: an interactive session in
// the terminal that it is started in, with the hook that --settings wires, which
// begins with the last argument as its prompt. Once the stop is approved it sits
// at its prompt until a signal ends it. It returns the exit status.
func InTerminal(args []string, answer func(text string) string) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error, 1)
	go func() {
		if err := interact(args, answer); err != nil {
			failed <- err
		}
	}()
	select {
	case <-ended:
		return 128 + int(syscall.SIGTERM)
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

func interact(args []string, answer func(string) string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return errors.New("agent: there is no terminal")
	}
	i := slices.Index(args, "--settings")
	if i < 0 || i+1 >= len(args)-1 {
		return fmt.Errorf("agent: the arguments lack --settings or a prompt: %q", args)
	}
	hook, err := wired(args[i+1])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a := &Agent{Hook: hook, Answer: answer, Env: append(os.Environ(),
		"CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR="+dir)}
	if i := slices.Index(args, "--resume"); i >= 0 {
		a.SessionID = args[i+1]
	}
	return a.Run(context.Background(), args[len(args)-1])
}

// wired is the command of the Stop hook in a settings file.
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
	for _, group := range settings.Hooks["Stop"] {
		for _, h := range group.Hooks {
			return append([]string{h.Command}, h.Args...), nil
		}
	}
	return nil, fmt.Errorf("agent: %s wires no hook of Stop", path)
}
