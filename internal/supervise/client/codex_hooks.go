package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

const (
	// askTime is how long Codex may take to list its hooks.
	askTime = 30 * time.Second
	// maxAnswer bounds the answer, in bytes.
	maxAnswer = 4 << 20
	// maxErrors bounds what is kept of its errors, in bytes.
	maxErrors = 4000
)

// requiredRelease names the first release that can be asked for its hooks.
const requiredRelease = "it takes 0.169 or later: npm install -g @openai/codex"

// CodexHook is a hook that Codex knows.
type CodexHook struct {
	Key     string `json:"key"`
	Event   string `json:"eventName"`  // such as stop, in Codex's spelling
	Source  string `json:"source"`     // such as user, project or sessionFlags
	Path    string `json:"sourcePath"` // the file that defines it
	Command string `json:"command"`    // a shell line
	Timeout int    `json:"timeoutSec"`
	Enabled bool   `json:"enabled"`
	Sum     string `json:"currentHash"`
	Trust   string `json:"trustStatus"`
}

// fromFlags is the source of hooks that arguments wire.
const fromFlags = "sessionFlags"

// Trusted reports whether Codex runs the hook without asking.
func (h CodexHook) Trusted() bool { return h.Trust == "trusted" || h.Trust == "managed" }

// CodexHooks lists the hooks of the session that command, with its arguments, starts in dir. It
// asks a server of its own, which ends with the answer, and changes nothing.
func CodexHooks(ctx context.Context, command, env []string, dir string) (hooks []CodexHook, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ask %s for its hooks: %w", command[0], err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	// A group ends a wrapper's child as well.
	cmd := guardian.Group(ctx, syscall.SIGKILL, command[0], append(slices.Clone(command[1:]), "app-server")...)
	cmd.Env, cmd.Dir = env, dir
	errs := &words.Tail{Most: maxErrors}
	cmd.Stderr = errs
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
	hooks, err = converse(in, io.LimitReader(out, maxAnswer), dir)
	cancel() // the server runs until it is ended
	_ = cmd.Wait()
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		err = fmt.Errorf("no answer within %v", askTime)
	}
	if text := errs.String(); err != nil && text != "" {
		if at := strings.LastIndex(text, "Error: "); at >= 0 {
			text, _, _ = strings.Cut(text[at:], "\n") // a backtrace follows
		}
		err = fmt.Errorf("%w: %s", err, words.Brief(text))
	}
	return hooks, err
}

// converse exchanges lines of JSON with the server. The server's lines answer the request of that number, or are
// messages of its own.
func converse(in io.Writer, out io.Reader, dir string) ([]CodexHook, error) {
	answers := json.NewDecoder(out)
	ask := func(id int, method string, params any) (json.RawMessage, error) {
		if err := json.NewEncoder(in).Encode(map[string]any{"id": id, "method": method, "params": params}); err != nil {
			return nil, unanswered(method, err)
		}
		for {
			var a struct {
				ID     json.RawMessage // a number, or a string in the server's own requests
				Result json.RawMessage
				Error  *struct{ Message string }
			}
			switch err := answers.Decode(&a); {
			case err != nil:
				return nil, unanswered(method, err)
			case string(a.ID) != strconv.Itoa(id):
				continue
			case a.Error != nil:
				return nil, fmt.Errorf("it refuses %s (%s): %s", method, words.Brief(a.Error.Message), requiredRelease)
			}
			return a.Result, nil
		}
	}
	if _, err := ask(1, "initialize", map[string]any{"clientInfo": map[string]any{"name": "heartbeat", "version": "1"}}); err != nil {
		return nil, err
	}
	_, _ = in.Write([]byte(`{"method":"initialized"}` + "\n")) // an error here shows at the next request
	result, err := ask(2, "hooks/list", map[string]any{"cwds": []string{dir}})
	if err != nil {
		return nil, err
	}
	var lists struct {
		Data []struct {
			Hooks  []CodexHook
			Errors []struct{ Message string }
		}
	}
	if err := json.Unmarshal(result, &lists); err != nil {
		return nil, fmt.Errorf("its list of hooks has another form: %w", err)
	}
	var all []CodexHook
	for _, l := range lists.Data {
		if len(l.Hooks) == 0 && len(l.Errors) > 0 { // with another configuration than the session's
			return nil, fmt.Errorf("its configuration is not valid: %s: correct it, then try again", words.Brief(l.Errors[0].Message))
		}
		all = append(all, l.Hooks...)
	}
	return all, nil
}

func unanswered(method string, why error) error {
	return fmt.Errorf("it gave no answer to %s (%w): %s", method, why, requiredRelease)
}
