package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxCodexRatio is what a tick of Codex may take of one of Claude Code.
const maxCodexRatio = 1.02

// measureCodex takes ticks of a session of each client in turn.
func measureCodex(b *bench) (t table, err error) {
	restore, err := becomeCodex()
	if err != nil {
		return t, err
	}
	defer restore()
	var lanes [2]*lane
	for i, name := range []string{"tick-codex", "tick-claude"} {
		if lanes[i], err = b.filledLane(name, 1+b.plan.pairs); err != nil {
			return t, err
		}
		defer lanes[i].close()
	}
	codex, claude := lanes[0], lanes[1]
	claude.env = []string{fmt.Sprintf("CLAUDE_PID=%d", os.Getpid())}
	if err := codex.asCodex(); err != nil {
		return t, err
	}
	var took [2]sample
	for turn := range 1 + b.plan.pairs {
		for i, l := range lanes {
			one, err := l.tick()
			if err != nil {
				return t, err
			}
			if turn > 0 { // the first has nothing to acknowledge
				took[i] = append(took[i], one)
			}
		}
	}
	r := took[0].over(took[1])
	t = table{
		title: "One tick of Codex",
		how: "The same tick of a session of Codex, in turn with one of Claude Code. Codex says nothing of its process: the hook looks for it among those above.\n" +
			"The ratio is the median of each tick's to the one beside it.",
		header: []string{"", "runs", "median", "min", "ratio"},
		result: fmt.Sprintf("Target: a ratio of at most %.2f: %s.", maxCodexRatio, met(r <= maxCodexRatio)),
	}
	t.add("Codex", fmt.Sprint(len(took[0])), ms(took[0].median()), ms(took[0].min()), ratio(r))
	t.add("Claude Code", fmt.Sprint(len(took[1])), ms(took[1].median()), ms(took[1].min()), ratio(1))
	return t, nil
}

// becomeCodex has this process be called codex, as the client above a hook is.
func becomeCodex() (restore func(), err error) {
	const name = "/proc/self/comm"
	own, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, []byte("codex"), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("be called codex, which takes Linux: %w", err)
	}
	return func() { _ = os.WriteFile(name, own, 0) }, nil // only its name
}

// asCodex makes the session one of Codex.
func (l *lane) asCodex() error {
	l.input.TurnID, l.input.PromptID = l.input.PromptID, ""
	l.input.TranscriptPath = filepath.Join(l.dir, "rollout-2026-01-02T03-04-05-"+l.input.SessionID+".jsonl")
	return os.WriteFile(l.input.TranscriptPath, []byte(`{"type":"session_meta","payload":{}}`+"\n"), 0o600)
}
