package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const maxMeterRatio = 1.30

// benchSession is the session that is metered.
const benchSession = "00000000-0000-4000-8000-000000000000"

// measureMeter compares a reading of the status line with a Go program that does nothing.
func measureMeter(b *bench) (table, error) {
	m, err := b.meteredSession()
	if err != nil {
		return table{}, err
	}
	defer m.run.close()
	for range 150 { // the meter keeps its last 128 turns
		if err := m.reads(); err != nil {
			return table{}, err
		}
	}
	m.took = nil
	var empty sample
	for range b.plan.pairs {
		if err := m.reads(); err != nil {
			return table{}, err
		}
		_, floor, err := m.run.run(nil, b.programs.empty)
		if err != nil {
			return table{}, err
		}
		empty = append(empty, floor)
	}
	if err := m.verify(); err != nil {
		return table{}, err
	}
	t := table{
		title: "The meter",
		how: "`heartbeat-meter`, a reading of the status line as a whole process, after a turn of 20 KB in a session of 150 turns before, in turn with a Go program\n" +
			"that prints one line. It said nothing, and the last state has every request. The ratio is the median of each run's to the one beside it.",
		header: []string{"", "runs", "median", "min", "ratio"},
	}
	over := m.took.over(empty)
	t.add("heartbeat-meter", fmt.Sprint(len(m.took)), ms(m.took.median()), ms(m.took.min()), ratio(over))
	t.add("an empty Go program", fmt.Sprint(len(empty)), ms(empty.median()), ms(empty.min()), ratio(1))
	t.result = fmt.Sprintf("Target: a ratio of at most %.2f: %s.", maxMeterRatio, met(over <= maxMeterRatio))
	return t, nil
}

// metered is a session whose turns are written here.
type metered struct {
	run        *runner
	program    string
	dir        string
	transcript string
	turns      int
	took       sample
}

func (b *bench) meteredSession() (*metered, error) {
	dir, err := b.folder("meter")
	if err != nil {
		return nil, err
	}
	r, err := b.runner()
	if err != nil {
		return nil, err
	}
	return &metered{run: r, program: b.programs.meter, dir: dir, transcript: filepath.Join(dir, "transcript.jsonl")}, nil
}

// reads adds a turn to the transcript and has it metered.
func (m *metered) reads() error {
	s := metering{dir: m.dir, transcript: m.transcript, session: benchSession, turns: m.turns}
	err := s.turn()
	m.turns = s.turns
	if err == nil {
		err = s.read(m.run, m.program)
	}
	m.took = append(m.took, s.took)
	return err
}

// metering is a session whose transcript grows by turns.
type metering struct {
	dir, transcript, session string
	turns                    int
	took                     time.Duration
}

const turnUsage = `{"input_tokens":1000,"cache_creation_input_tokens":0,"cache_read_input_tokens":20000,"output_tokens":100}`

// turn adds a turn to the transcript.
func (m *metering) turn() error {
	m.turns++
	line := fmt.Sprintf(`{"type":"user","isMeta":true,"isSidechain":false,"message":{"role":"user","content":%q}}`+"\n"+
		`{"type":"assistant","isSidechain":false,"message":{"id":"msg_%d","model":"claude-opus-5-5","content":[{"type":"text","text":%q}],"usage":%s},"timestamp":"2026-11-22T14:45:39.475Z"}`+"\n",
		strings.Repeat("question ", 1<<10), m.turns, strings.Repeat("answer ", 1500), turnUsage)
	f, err := os.OpenFile(m.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write a transcript: %w", err)
	}
	return nil
}

// read has the session metered.
func (m *metering) read(r *runner, program string) error {
	status := fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"cwd":"/","model":{"id":"claude-opus-5-5"},"cost":{"total_cost_usd":%d.25},`+
		`"context_window":{"used_percentage":2,"current_usage":%s},"prompt_cache":{"requests":%d}}`, m.session, m.transcript, m.turns, turnUsage, m.turns)
	out, took, err := r.run([]byte(status), program, "--inbox", filepath.Join(m.dir, "inbox.jsonl"))
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("heartbeat-meter printed %.80q", out)
	}
	m.took = took
	return err
}

// verify checks that the last state has everything.
func (m *metered) verify() error {
	state, err := os.ReadFile(filepath.Join(m.dir, ".meter-"+benchSession))
	if err != nil {
		return fmt.Errorf("read the meter: %w", err)
	}
	if want := fmt.Sprintf(`"requests":%d,`, m.turns); !strings.Contains(string(state), want) {
		return fmt.Errorf("the meter has no %s: %.300s", want, state)
	}
	return nil
}
