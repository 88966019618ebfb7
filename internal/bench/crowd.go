package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/testing/agent"
)

// crowd is an inbox and producers, each of which waits for its answer.
type crowd struct {
	*runner
	b       *bench
	inbox   string
	waiting []*asking
}

// asking is one producer.
type asking struct {
	cmd      *exec.Cmd
	question string
	answer   *os.File // its stdout
	ended    chan ending
}

// ending is how a process ended, and when.
type ending struct {
	at  time.Time
	err error
}

func (b *bench) crowd(name string) (*crowd, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	r, err := b.runner()
	if err != nil {
		return nil, err
	}
	return &crowd{runner: r, b: b, inbox: filepath.Join(dir, "inbox.jsonl")}, nil
}

func question(i int) string { return fmt.Sprintf("question %02d", i) }

func answerTo(question string) string { return "answer to " + question }

// sendOnly sends what a crowd would, without waiting.
func (c *crowd) sendOnly() error {
	for i := range c.b.plan.crowd {
		if _, _, err := c.run(nil, c.b.programs.heartbeat, "send", "--inbox", c.inbox, question(i)); err != nil {
			return err
		}
	}
	return nil
}

// start lets all producers send, and returns when all of them wait.
func (c *crowd) start() error {
	for i := range c.b.plan.crowd {
		if err := c.ask(question(i), c.file("answer-"+strconv.Itoa(i))); err != nil {
			return err
		}
	}
	for _, a := range c.waiting {
		if err := awaitWaiting(a.cmd.Process.Pid, a.endedEarly); err != nil {
			return fmt.Errorf("%s: %w", a.question, errors.Join(err, c.verify(a.cmd.Args, nil)))
		}
	}
	return nil
}

func (c *crowd) ask(question, path string) error {
	answer, err := os.Create(path)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(c.ctx, c.b.programs.heartbeat, "send", "--inbox", c.inbox, "--wait", "--timeout", "60s", question)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(), answer, c.stderr
	if err := cmd.Start(); err != nil {
		return errors.Join(err, answer.Close())
	}
	a := &asking{cmd: cmd, question: question, answer: answer, ended: make(chan ending, 1)}
	go func() {
		err := cmd.Wait()
		a.ended <- ending{time.Now(), err}
	}()
	c.waiting = append(c.waiting, a)
	return nil
}

func (a *asking) endedEarly() error {
	select {
	case e := <-a.ended:
		a.ended <- e
		return errors.New("it ended before it waited")
	default:
		return nil
	}
}

// stay lets them wait for a while.
func (c *crowd) stay(length time.Duration) error {
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-time.After(length):
		return nil
	}
}

// cpuTime is the CPU time that all producers have used so far.
func (c *crowd) cpuTime() (sum time.Duration, err error) {
	for _, a := range c.waiting {
		one, err := cpuTime(a.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// drain lets a session answer everything.
func (c *crowd) drain() (time.Duration, error) {
	a := agent.Agent{
		Hook:       []string{c.b.programs.hook, "--inbox", c.inbox},
		Env:        environment(),
		Transcript: c.file("transcript.jsonl"),
		Answer:     answerTo,
	}
	began := time.Now()
	err := a.Run(c.ctx, "say ready")
	return time.Since(began), err
}

// collect waits for all producers to end, each with its own answer. last is when the
// last one ended; exits is how long after its acknowledgement each one ended.
func (c *crowd) collect() (last time.Time, exits sample, err error) {
	ends := map[string]time.Time{}
	for _, a := range c.waiting {
		e := <-a.ended
		a.ended <- e
		if err := c.verify(a.cmd.Args, e.err); err != nil {
			return last, nil, err
		}
		got, err := os.ReadFile(a.answer.Name())
		if err != nil {
			return last, nil, err
		}
		if want := answerTo(a.question); string(got) != want+"\n" {
			return last, nil, fmt.Errorf("%s: it printed %.60q", a.question, got)
		}
		ends[answerTo(a.question)] = e.at
		if e.at.After(last) {
			last = e.at
		}
	}
	exits, err = c.sinceAcknowledged(ends)
	return last, exits, err
}

// sinceAcknowledged takes the times from the results.
func (c *crowd) sinceAcknowledged(ends map[string]time.Time) (all sample, err error) {
	results, err := os.ReadFile(c.file(".results.jsonl"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(results)) {
		var r struct {
			Reply string    `json:"reply"`
			At    time.Time `json:"acknowledged_at"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
		end, ok := ends[r.Reply]
		if !ok {
			return nil, fmt.Errorf("results: nobody waited for %.60q", r.Reply)
		}
		all = append(all, end.Sub(r.At))
	}
	if len(all) != len(ends) {
		return nil, fmt.Errorf("results: %d lines for %d entries", len(all), len(ends))
	}
	return all, nil
}

// used is the CPU time of all producers after their end.
func (c *crowd) used() (sum time.Duration) {
	for _, a := range c.waiting {
		sum += a.cmd.ProcessState.UserTime() + a.cmd.ProcessState.SystemTime()
	}
	return sum
}

// end kills the producers that still run.
func (c *crowd) end() error {
	defer c.close()
	var err error
	for _, a := range c.waiting {
		_ = a.cmd.Process.Kill() // it should have ended by itself
		<-a.ended
		err = errors.Join(err, a.answer.Close())
	}
	return err
}
