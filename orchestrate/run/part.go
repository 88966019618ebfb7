package run

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/internal/flat"
)

func (r *Run) parseTask(text []byte) (Task, error) {
	m, err := flat.Parse(text)
	if err != nil {
		return Task{}, err
	}
	t := Task{
		EffectID: m.String("effectId"), TaskID: m.String("taskId"), StepID: m.String("stepId"), InvocationKey: m.String("invocationKey"),
		Kind: m.String("kind"), Title: m.String("title"), Description: m.String("description"), Labels: texts(m.Raw("labels")),
		Execution: m.Raw("execution"), Metadata: m.Raw("metadata"), Inputs: m.Raw("inputs"), InputsRef: m.String("inputsRef"), Raw: text,
	}
	if t.InputsRef != "" {
		if !filepath.IsLocal(t.InputsRef) {
			return Task{}, fmt.Errorf("its inputsRef %q leads out of the run", t.InputsRef)
		}
		t.InputsPath = filepath.Join(r.dir, t.InputsRef)
	}
	t.takePart(m)
	return t, nil
}

func (t *Task) takePart(m *flat.Members) {
	switch t.Kind {
	case "node":
		t.Node = nodeOf(object(m.Raw("node")))
	case "shell":
		t.Shell = shellOf(object(m.Raw("shell")))
	case "agent":
		p := object(m.Raw("agent"))
		t.Agent = &Agent{Name: p.String("name"), Prompt: p.Raw("prompt"), OutputSchema: p.Raw("outputSchema")}
	case "skill":
		p := object(m.Raw("skill"))
		t.Skill = &Skill{Name: p.String("name"), Context: p.Raw("context")}
	case "breakpoint":
		t.Breakpoint = t.breakpoint(object(m.Raw("metadata")), object(m.Raw("breakpoint")))
	case "sleep":
		t.Sleep = sleepOf(object(m.Raw("sleep")), object(m.Raw("metadata")))
	case "orchestrator_task":
		p := object(m.Raw("orchestratorTask"))
		t.Orchestrator = &Orchestrator{Payload: first(object(m.Raw("metadata")).Raw("payload"), p.Raw("payload")), ResumeCommand: p.String("resumeCommand")}
	}
}

func nodeOf(p *flat.Members) *Node {
	n := &Node{Entry: p.String("entry"), Args: texts(p.Raw("args")), Cwd: p.String("cwd"), Timeout: millis(p, "timeoutMs")}
	object(p.Raw("env")).Without(nil, func(name string, raw []byte) {
		if n.Env == nil {
			n.Env = map[string]string{}
		}
		if v := gjson.ParseBytes(raw); v.Type == gjson.String {
			n.Env[name] = flat.Text(v.Raw)
		}
	})
	return n
}

func shellOf(p *flat.Members) *Shell {
	return &Shell{Command: p.String("command"), Cwd: p.String("cwd"), ExitCode: int(p.Int("expectedExitCode")), Timeout: millis(p, "timeoutMs")}
}

// breakpoint reads a question from one of two places: where the process's ctx.breakpoint
// puts it, or from a task that was defined as a breakpoint.
func (t *Task) breakpoint(metadata, defined *flat.Members) *Breakpoint {
	b := &Breakpoint{
		Payload: first(metadata.Raw("payload"), defined.Raw("payload")),
		Expert:  metadata.Raw("expert"), Tags: texts(metadata.Raw("tags")), Strategy: metadata.String("strategy"),
	}
	ctx, own := object(metadata.Raw("payload")), object(defined.Raw("payload"))
	for _, s := range []string{ctx.String("question"), own.String("question"), t.Title, t.Kind} {
		if b.Question == "" {
			b.Question = s
		}
	}
	p := object(b.Payload)
	b.Title, b.Options, b.Context = p.String("title"), p.Raw("options"), p.Raw("context")
	return b
}

func sleepOf(p, metadata *flat.Members) *Sleep {
	s := &Sleep{ISO: p.String("iso")}
	for _, m := range []*flat.Members{p, metadata} {
		if ms := m.Int("targetEpochMs"); ms != 0 && s.Until.IsZero() {
			s.Until = time.UnixMilli(ms).UTC()
		}
	}
	if t, err := time.Parse(time.RFC3339, s.ISO); err == nil && s.Until.IsZero() {
		s.Until = t.UTC()
	}
	return s
}

// object reads an object; any other value has no members.
func object(raw []byte) *flat.Members {
	m, err := flat.Parse(raw)
	if err != nil {
		return &flat.Members{}
	}
	return m
}

func first(a, b []byte) []byte {
	if a != nil {
		return a
	}
	return b
}

// texts reads a list of strings; other values in it are left out.
func texts(raw []byte) []string {
	list := gjson.ParseBytes(raw)
	if !list.IsArray() {
		return nil
	}
	var all []string
	for _, v := range list.Array() {
		if v.Type == gjson.String {
			all = append(all, flat.Text(v.Raw))
		}
	}
	return all
}

func millis(p *flat.Members, name string) time.Duration {
	return time.Duration(p.Int(name)) * time.Millisecond
}
