package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxRunShare is the share of babysitter's own time that a decision about a run may
	// take.
	maxRunShare = 1.0 / 50
	// maxLongRun is how much longer it may take with a long journal than with a short
	// one.
	maxLongRun = 2.0
	longRun    = 10_000 // events
	// journalStill is how long a journal must be unchanged.
	journalStill = 2500 * time.Millisecond
)

// orchestrated is a run that waits for a person, in a directory of its own.
type orchestrated struct {
	*lane
	babysitter, run, states string
	ours, theirs            sample
}

func measureOrchestrated(b *bench) (table, error) {
	t := table{
		title: "A stop decision about a run",
		how: "A hook with `--run`, of a babysitter run that waits for a person's answer, beside `babysitter hook:run --hook-type stop`: both approve. The\n" +
			"inbox is empty, so the hook looks at all that the run waits for. Then the same run with 10,000 events in its journal.",
		header: []string{"", "runs", "median", "min", "against babysitter"},
	}
	var shares, medians []float64
	for _, journal := range []struct {
		name   string
		events int
	}{{"short journal", 0}, {"10,000 events", longRun}} {
		o, err := b.orchestrate(fmt.Sprintf("run-%d", journal.events), journal.events)
		if err != nil {
			return t, err
		}
		if err := o.measure(b.plan.orchestrated); err != nil {
			return t, err
		}
		o.close()
		share := o.ours.over(o.theirs)
		t.add(journal.name, fmt.Sprint(len(o.ours)), ms(o.ours.median()), ms(o.ours.min()), fmt.Sprintf("%.4f (%s)", share, ms(o.theirs.median())))
		shares, medians = append(shares, share), append(medians, float64(o.ours.median()))
	}
	longer := max(medians[0], medians[1]) / min(medians[0], medians[1])
	t.result = fmt.Sprintf("Targets: at most 1/50 of babysitter's, %s; the long journal at most twice the short one, %.2f: %s.",
		met(max(shares[0], shares[1]) <= maxRunShare), longer, met(longer <= maxLongRun))
	return t, nil
}

func findBabysitter() (string, error) {
	if path := os.Getenv("HEARTBEAT_BABYSITTER"); path != "" {
		return path, nil
	}
	path, err := exec.LookPath("babysitter")
	if err != nil {
		return "", fmt.Errorf("%w: install it, or name it in HEARTBEAT_BABYSITTER", err)
	}
	return path, nil
}

// orchestrate makes a run with the real command and takes its first step.
func (b *bench) orchestrate(name string, events int) (*orchestrated, error) {
	o := &orchestrated{}
	var err error
	if o.babysitter, err = findBabysitter(); err != nil {
		return nil, err
	}
	if o.lane, err = b.lane(name); err != nil {
		return nil, err
	}
	o.run, o.states = filepath.Join(o.dir, ".a5c", "runs", "r1"), filepath.Join(o.dir, "states")
	const process = "export async function process(inputs, ctx) { return await ctx.breakpoint({question: 'Go on?'}); }\n"
	if err := os.WriteFile(filepath.Join(o.dir, "p.mjs"), []byte(process), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{o.babysitter, "run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json"},
		{o.babysitter, "session:init", "--harness", "custom", "--session-id", "s", "--run-id", "r1", "--state-dir", o.states, "--json"},
		{filepath.Join(filepath.Dir(o.hook), "heartbeat"), "orchestrate", "--inbox", o.inbox, "--run", o.run, "--babysitter", o.babysitter, "--once"},
	} {
		cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
		cmd.Dir = o.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(args[:2], " "), err, out)
		}
	}
	return o, errors.Join(o.lengthen(events), o.settle())
}

// lengthen adds events to the journal that change nothing.
func (o *orchestrated) lengthen(to int) error {
	journal := filepath.Join(o.run, "journal")
	names, err := os.ReadDir(journal)
	if err != nil {
		return err
	}
	last := names[len(names)-1].Name()
	event, err := json.Marshal(map[string]any{"type": "PROCESS_LOG", "recordedAt": "2026-01-01T00:00:00.000Z", "data": map[string]string{"label": "x"}})
	if err != nil {
		return err
	}
	for seq := len(names) + 1; seq <= to; seq++ {
		// After the last one, and ascending: the first ten characters are the time.
		ulid := last[7:17] + fmt.Sprintf("ZZZZ%012d", seq)
		if err := os.WriteFile(filepath.Join(journal, fmt.Sprintf("%06d.%s.json", seq, ulid)), event, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// settle lets the hook read and keep what is new. It first waits until the journal is
// not young, since it could change again without a new time.
func (o *orchestrated) settle() error {
	time.Sleep(journalStill)
	for range 2 {
		if _, err := o.decide(); err != nil {
			return err
		}
	}
	return nil
}

// decide runs a Stop of our hook, which must be approved.
func (o *orchestrated) decide() (took sample, err error) {
	stdin, err := o.stop()
	if err != nil {
		return nil, err
	}
	out, t, err := o.lane.run(stdin, o.hook, "--inbox", o.inbox, "--run", o.run, "--babysitter", o.babysitter)
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("the hook printed %q", out)
	}
	return sample{t}, err
}

// measure runs Stops of our hook and then of babysitter's, which adds an event to the
// journal each time.
func (o *orchestrated) measure(n int) error {
	for range n {
		took, err := o.decide()
		if err != nil {
			return err
		}
		o.ours = append(o.ours, took...)
	}
	stdin := []byte(`{"session_id":"s","hook_event_name":"Stop"}`)
	for range n {
		out, t, err := o.lane.run(stdin, o.babysitter, "hook:run", "--hook-type", "stop", "--harness", "claude-code",
			"--state-dir", o.states, "--runs-dir", filepath.Dir(o.run), "--json")
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(out)) != "{}" {
			return fmt.Errorf("babysitter printed %q", out)
		}
		o.theirs = append(o.theirs, t)
	}
	return nil
}
