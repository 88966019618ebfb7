package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"heartbeat/internal/machine"
)

// TranscriptsVariable names the folder in which a stand-in program keeps its transcripts.
const TranscriptsVariable = "HEARTBEAT_TEST_TRANSCRIPTS"

// NoHooksVariable, when set, has the stand-in run no hooks.
const NoHooksVariable = "HEARTBEAT_TEST_NO_HOOKS"

// Printed is one turn of a session that prints its messages.
type Printed struct {
	Text string // what the turn is about: the prompt, or what a hook delivered
	N    int    // of the turn, from 1
	// Print prints a line of stream-json as it is.
	Print func(line string)
}

// InPrint is the stand-in as `claude --print --output-format stream-json`: its prompt is
// its standard input, and it takes the hook from --settings. turn returns the reply to a
// text; it may print lines, wait, or end the process. InPrint returns the exit status.
func InPrint(args []string, turn func(Printed) string) int {
	if err := inPrint(args, turn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func inPrint(args []string, turn func(Printed) string) error {
	c := parse(args)
	hook, err := wired(c.settings)
	if err != nil {
		return err
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if len(prompt) == 0 {
		//lint:ignore ST1005 these are the client's own words
		return fmt.Errorf("Error: Input must be provided either through stdin or as a prompt argument when using --print")
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	p := printer{out: bufio.NewWriter(os.Stdout), source: "startup", Agent: Agent{
		Hook: hook, SessionID: c.sessionID, Env: append(os.Environ(),
			"CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=sdk-cli", "CLAUDE_PROJECT_DIR="+dir),
	}}
	if c.resume != "" {
		p.SessionID, p.source = c.resume, "resume"
	}
	return p.run(context.Background(), string(prompt), turn)
}

// printer is a session that prints its messages.
type printer struct {
	Agent
	out    *bufio.Writer
	source string
	turns  int
	reply  string
}

func (p *printer) run(ctx context.Context, text string, turn func(Printed) string) (err error) {
	if err := p.keepTranscript(); err != nil {
		return err
	}
	if p.promptID, err = machine.RandomName(); err != nil {
		return err
	}
	if _, err := p.fire(ctx, map[string]any{"hook_event_name": "SessionStart", "source": p.source}); err != nil {
		return err
	}
	p.message("system", map[string]any{"subtype": "init", "model": "stand-in", "tools": []string{}})
	if _, err := p.fire(ctx, map[string]any{"hook_event_name": "UserPromptSubmit", "prompt": text}); err != nil {
		return err
	}
	p.Answer = func(text string) string {
		p.turns++
		p.reply = turn(Printed{Text: text, N: p.turns, Print: p.line})
		p.message("assistant", map[string]any{"parent_tool_use_id": nil, "message": map[string]any{
			"id": "msg_" + strconv.Itoa(p.turns), "type": "message", "role": "assistant", "model": "stand-in",
			"content": []any{map[string]any{"type": "text", "text": p.reply}},
			"usage":   map[string]any{"input_tokens": 10, "output_tokens": 5},
		}})
		return p.reply
	}
	if err := p.turnsOf(ctx, text); err != nil {
		return err
	}
	p.message("result", map[string]any{
		"subtype": "success", "is_error": false, "num_turns": p.turns, "result": p.reply,
		"total_cost_usd": 0.01 * float64(p.turns),
		"usage":          map[string]any{"input_tokens": 10 * p.turns, "output_tokens": 5 * p.turns},
	})
	_, err = p.fire(ctx, map[string]any{"hook_event_name": "SessionEnd", "reason": "other"})
	return err
}

// keepTranscript gives the session its id, and its transcript if there is a folder for
// that.
func (a *Agent) keepTranscript() (err error) {
	if a.SessionID == "" {
		if a.SessionID, err = machine.RandomName(); err != nil {
			return err
		}
	}
	if folder := os.Getenv(TranscriptsVariable); folder != "" {
		a.Transcript, a.blocks = filepath.Join(folder, a.SessionID+".jsonl"), true
	}
	return nil
}

func (p *printer) message(kind string, members map[string]any) {
	members["type"], members["session_id"] = kind, p.SessionID
	line, err := json.Marshal(members)
	if err != nil {
		panic(err) // made of strings and numbers
	}
	p.line(string(line))
}

func (p *printer) line(text string) {
	_, _ = p.out.WriteString(text + "\n")
	_ = p.out.Flush() // a reader that is gone is noticed by nobody, as with the client
}
