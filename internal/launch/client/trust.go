package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/words"
)

const (
	// askTime is how long Codex may take to say which hooks it knows.
	askTime = 30 * time.Second
	// maxAnswer is how long what it says may be.
	maxAnswer = 4 << 20
)

// takesCodex is the release from which on Codex can be asked.
const takesCodex = "it takes 0.169 or later: npm install -g @openai/codex"

// askTrust asks Codex for the names and the sums of the hooks that the wiring gives it, and
// returns the argument with which it runs them without a person who trusts them.
func askTrust(ctx context.Context, s Session, wiring []string, line string) (string, error) {
	hooks, err := listHooks(ctx, s, wiring)
	if err != nil {
		return "", fmt.Errorf("ask %s for its hooks: %w", s.Command[0], err)
	}
	var trusted []string
	for _, h := range hooks {
		if h.Source != "sessionFlags" || h.Command != line {
			continue
		}
		key, err := toml(h.Key)
		if err != nil {
			return "", err
		}
		sum, err := toml(h.Sum)
		if err != nil {
			return "", err
		}
		trusted = append(trusted, fmt.Sprintf("%s={trusted_hash=%s}", key, sum))
	}
	if len(trusted) != len(wiring)/2 {
		return "", fmt.Errorf("%s does not take the hook of the session: its hooks are disabled "+
			"([features] hooks = false in a config.toml, --disable hooks, or an administrator), "+
			"or the command does not pass its arguments on to Codex", s.Command[0])
	}
	return "hooks.state={" + strings.Join(trusted, ",") + "}", nil
}

// listed is one hook that Codex knows.
type listed struct {
	Key     string `json:"key"`
	Source  string `json:"source"`
	Command string `json:"command"`
	Sum     string `json:"currentHash"`
}

// listHooks asks Codex's own server, in a process of its own that ends with the answer.
func listHooks(ctx context.Context, s Session, wiring []string) ([]listed, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	args := slices.Concat(wiring, codexConfig(s.Command[1:]), []string{"app-server"})
	cmd := exec.CommandContext(ctx, s.Command[0], args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = s.Env, s.Dir, time.Second
	var said tail
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	hooks, err := converse(in, io.LimitReader(out, maxAnswer), s.Dir)
	cancel() // it serves until it is ended
	_ = cmd.Wait()
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		err = fmt.Errorf("no answer within %v", askTime)
	}
	if err != nil && len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, words.Brief(string(said)))
	}
	return hooks, err
}

// converse has one conversation with the server: lines of JSON, each an answer to the request
// with its number, or something that it tells by itself.
func converse(in io.Writer, out io.Reader, dir string) ([]listed, error) {
	answers := json.NewDecoder(out)
	ask := func(id int, method string, params any) (json.RawMessage, error) {
		if err := json.NewEncoder(in).Encode(map[string]any{"id": id, "method": method, "params": params}); err != nil {
			return nil, unanswered(method, err)
		}
		for {
			var a struct {
				ID     int
				Result json.RawMessage
				Error  *struct{ Message string }
			}
			switch err := answers.Decode(&a); {
			case err != nil:
				return nil, unanswered(method, err)
			case a.ID != id:
				continue
			case a.Error != nil:
				return nil, fmt.Errorf("it refuses %s (%s): %s", method, words.Brief(a.Error.Message), takesCodex)
			}
			return a.Result, nil
		}
	}
	if _, err := ask(1, "initialize", map[string]any{"clientInfo": map[string]any{"name": "heartbeat", "version": "1"}}); err != nil {
		return nil, err
	}
	_, _ = in.Write([]byte(`{"method":"initialized"}` + "\n")) // what fails here fails at once again
	result, err := ask(2, "hooks/list", map[string]any{"cwds": []string{dir}})
	if err != nil {
		return nil, err
	}
	var lists struct {
		Data []struct{ Hooks []listed }
	}
	if err := json.NewDecoder(bytes.NewReader(result)).Decode(&lists); err != nil {
		return nil, fmt.Errorf("its list of hooks is of another form: %w", err)
	}
	var all []listed
	for _, l := range lists.Data {
		all = append(all, l.Hooks...)
	}
	return all, nil
}

func unanswered(method string, why error) error {
	return fmt.Errorf("it gave no answer to %s (%w): %s", method, why, takesCodex)
}

// codexConfig are those of a command's arguments that change Codex's configuration.
func codexConfig(args []string) (config []string) {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch {
		case !slices.Contains([]string{"-c", "--config", "--enable", "--disable", "-p", "--profile"}, name):
		case joined:
			config = append(config, args[i])
		case i+1 < len(args):
			config = append(config, args[i], args[i+1])
			i++
		}
	}
	return config
}

// tail keeps the end of what is written to it.
type tail []byte

const maxTail = 400

func (t *tail) Write(b []byte) (int, error) {
	all := append(*t, b...)
	*t = all[max(0, len(all)-maxTail):]
	return len(b), nil
}
