package orchestrate

import (
	"fmt"
	"os"
	"path/filepath"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/prompt"
	"heartbeat/orchestrate/run"
	"heartbeat/orchestrate/schema"
)

// wording is the text of an effect's entry, still in parts.
func (b *Bridge) wording(effect string, t run.Task) prompt.Effect {
	return prompt.Effect{
		ResultCommand: b.ResultCommand, RunID: b.Run.ID(), ID: effect, Kind: t.Kind, Task: t.Raw,
		TaskFile:   filepath.Join(b.Run.Dir(), "tasks", effect, "task.json"),
		InputsFile: t.InputsPath,
	}
}

// ask makes an effect's entry.
func (s *step) ask(w want, a asked) (*inbox.Message, error) {
	t, err := s.Run.Task(w.Effect)
	if err != nil {
		return nil, err
	}
	s.ledger.Effects[w.Effect] = a
	of := s.wording(w.Effect, t)
	if asked := of.Schema(); asked != nil {
		if err := schema.Usable(asked); err != nil {
			of.SchemaFault = err.Error()
			s.report.Notes = append(s.report.Notes, fmt.Sprintf("the outputSchema of effect %s cannot be used, so its result is not checked: %v", w.Effect, err))
		}
	}
	m := s.message(a.Entry, w.Effect, t.Kind, t.StepID, of.Text())
	if limit := of.TimeLimit(); limit > 0 {
		m.Metadata[effect.MetaTimeLimit] = limit.Milliseconds()
	}
	return &m, nil
}

func (s *step) finishText() string {
	c := prompt.Completion{RunID: s.Run.ID(), Proof: s.Run.Proof()}
	if output := filepath.Join(s.Run.Dir(), "state", "output.json"); isThere(output) {
		c.OutputFile = output
	}
	return c.Text()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *step) failedText(f *run.Failure) string {
	text := f.Name + ": " + f.Message
	if f.Stack != "" {
		text += "\n" + f.Stack
	}
	return prompt.Failure{RunID: s.Run.ID(), RunDir: s.Run.Dir(), Error: text, Asks: !s.AnyCode}.Text()
}
