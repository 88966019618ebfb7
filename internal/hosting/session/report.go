package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
)

// How long the reports may hold the end of a session up. A guild that cannot be
// reached gets them later.
const (
	runningWait  = 10 * time.Second // for the running report, once the terminal one is due
	terminalWait = 90 * time.Second
)

// reporter tells the guild that the session runs.
type reporter struct {
	stop    context.CancelFunc // nil before the start
	settled chan struct{}      // closed once the running report is delivered or given up
	stopped chan struct{}      // closed once there are no more beats
}

// reportRunning reports that the session runs, and then beats until the end. It does
// not wait.
func (h *host) reportRunning() {
	ctx, cancel := context.WithCancel(context.Background())
	r := reporter{cancel, make(chan struct{}), make(chan struct{})}
	h.report = r
	s := h.snapshot()
	h.change(func(s *folder.State) { s.RunningReport = folder.Report{State: folder.Waiting} })
	go func() {
		_, err := h.box.ReportRunning(ctx, h.guild, runningOf(s))
		if err != nil {
			h.log.linef("Failed to report running: %v", err)
			h.warn("the guild was not told that the session runs: " + err.Error())
		}
		h.change(func(s *folder.State) { fared(&s.RunningReport, guild.Answer{}, err) })
		close(r.settled)
		h.beat(ctx)
		close(r.stopped)
	}()
}

// beat sends beats until ctx ends, and notes what the guild says to them.
func (h *host) beat(ctx context.Context) {
	beats := h.guild.StartBeats(ctx, h.Beat)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	var seen guild.BeatCount
	for {
		select {
		case <-beats.Done():
			return
		case <-look.C:
		}
		now := beats.Count()
		if now.Sent > seen.Sent {
			at := time.Now().UTC()
			h.note(func(s *folder.State) { s.LastBeatAt = &at })
		}
		if s := folder.Status(now.Status); s.Ended() && now.Status != seen.Status {
			h.warn("the guild holds the session as " + now.Status + " already, while it runs")
		}
		if now.Missed > 0 && seen.Missed == 0 {
			h.log.linef("the guild missed a heartbeat: %v", now.Last)
		}
		seen = now
	}
}

// endRunning stops the beats, and waits for the running report as long as it may take.
func (h *host) endRunning(ctx context.Context) {
	if h.report.stop == nil {
		return
	}
	select {
	case <-h.report.settled:
	case <-time.After(runningWait):
	case <-ctx.Done():
	}
	h.report.stop()
	<-h.report.stopped
}

// conclusion is the end of a session: what it came to is kept, then reported. The host
// does this, or who finishes for a dead one.
type conclusion struct {
	*record
	box        deadletter.Box
	guild      *guild.Client
	transcript func(io.Writer) error
	each       []guild.Entry
	log        *log
}

// keep writes the terminal report to its dead letter file, and then the state. Without
// room for the file the report is only in memory: it is unkept then, with the
// transcript as it is now, since the store may have lost messages once it is closed.
func (c *conclusion) keep(d Decision) (unkept *guild.Body) {
	step(stepDecided)
	s := c.snapshot()
	report := recordOf(s, d, c.each)
	report.Transcript = c.transcript
	if err := c.box.PutRecord(report); err != nil {
		c.log.linef("the terminal report cannot be kept, and is sent from memory: %v", err)
		unkept = inMemory(report)
	}
	step(stepKept)
	c.change(func(s *folder.State) {
		s.Status, s.Error = d.State, d.Error
		now := time.Now().UTC()
		s.EndedAt, s.Client = &now, nil
		s.TerminalReport = folder.Report{}
		if unkept == nil { // otherwise there is no file to send it from, and a finisher makes it again
			s.TerminalReport.State = folder.Waiting
		}
	})
	step(stepNoted)
	c.log.line(strings.TrimSuffix(fmt.Sprintf("session %s: %s", d.State, d.Error), ": "))
	return unkept
}

// deliver sends the terminal report. What the guild does not take stays in its file.
func (c *conclusion) deliver(ctx context.Context, unkept *guild.Body) (delivered bool) {
	id := c.snapshot().SessionID
	var answer guild.Answer
	var err error
	if unkept == nil {
		answer, err = c.box.Deliver(ctx, c.guild, deadletter.Record, id)
	} else {
		answer, err = c.guild.Record(ctx, *unkept)
	}
	var refused *guild.Refused
	switch {
	case err == nil:
	case unkept == nil && errors.Is(err, fs.ErrNotExist): // somebody drained it meanwhile
		err = nil
	case errors.As(err, &refused) && unkept == nil:
		c.log.linef("the guild refused the terminal report, which stays in %s: %v", c.box.Path(deadletter.Record, id), err)
	case unkept != nil:
		c.log.linef("Failed to report result: heartbeat-host drain-dlq makes the report again: %v", err)
		step(stepReported)
		return false
	default:
		c.log.linef("Failed to report result, which stays in %s: %v", c.box.Path(deadletter.Record, id), err)
	}
	if err == nil {
		if err := c.box.Remove(deadletter.Running, id); err != nil {
			c.log.linef("remove the running report: %v", err)
		}
	}
	step(stepReported)
	c.change(func(s *folder.State) { fared(&s.TerminalReport, answer, err) })
	return err == nil
}

// fared notes how a report fared.
func fared(r *folder.Report, a guild.Answer, err error) {
	now := time.Now().UTC()
	r.At, r.Reason = &now, ""
	r.Tries++
	var refused *guild.Refused
	var away *guild.Unreachable
	switch {
	case err == nil:
		r.State, r.As = folder.Delivered, folder.Status(a.As)
		if r.As == folder.Cancelled {
			r.As = ""
		}
		return
	case errors.As(err, &refused) && !errors.As(err, &away):
		r.State = folder.Refused
	default:
		r.State = folder.DeadLettered
	}
	r.Reason = err.Error()
}
