package session

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/host/signals"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/process"
	recovery "heartbeat/recover"
)

// Serve must be the first call of a program that uses [Run]. It does not return in the
// process that becomes a client whose memory is limited.
func Serve() { process.Serve() }

// Run hosts a session until its end, and reports it. The error says why it could not
// even begin, a *config.Problem if the caller can mend that; then nothing is left
// behind, and nothing was reported. From then on this process must start no others that
// it waits for itself: see [process.Adopt].
func Run(o Options) (Outcome, error) {
	if err := o.checkTerminal(); err != nil {
		return Outcome{}, err
	}
	t := newTelling(o.Notify)
	if !o.PTY { // the launcher reaps by itself
		process.Adopt()
	}
	taken := signals.Take()
	defer taken.Stop()
	h, err := begin(o.withDefaults())
	if err != nil {
		t.stop()
		return Outcome{}, err
	}
	h.telling = t
	h.signals = taken
	return h.run(), nil
}

func (o Options) withDefaults() Options {
	either := func(d *time.Duration, standard time.Duration) {
		if *d <= 0 {
			*d = standard
		}
	}
	either(&o.Grace, 10*time.Second)
	either(&o.ExitTimeout, 30*time.Second)
	either(&o.Beat, 30*time.Second)
	if o.Claude == "" {
		o.Claude = "claude"
	}
	if o.Policy == "" {
		o.Policy = recovery.DeadLetter
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 3
	}
	if o.SpoolMax == 0 {
		o.SpoolMax = 1 << 30
	}
	if o.StallAction == "" {
		o.StallAction = ReportStall
	}
	return o
}

// run is the session's life once it has begun. It always ends with a report.
func (h *host) run() Outcome {
	quiet, stopSweep := context.WithCancel(context.Background())
	defer stopSweep()
	ended := make(chan struct{})
	go h.heedSignals(ended)
	err := h.serve()
	if err == nil {
		go h.sweepOthers(quiet)
		if h.PTY {
			err = h.inTerminal()
		} else {
			err = h.rounds()
		}
	}
	if err != nil {
		h.log.linef("Fatal error: %v", err)
		h.change(func(s *folder.State) { s.Broken = err.Error() })
	}
	defer close(ended)
	return h.conclude()
}

// heedSignals takes signals for requests to cancel.
func (h *host) heedSignals(ended <-chan struct{}) {
	for _, come := range []<-chan struct{}{h.signals.First(), h.signals.Second()} {
		select {
		case <-come:
		case <-ended:
			return
		}
		if h.stalled.Load() {
			continue
		}
		sig, _ := h.signals.Signal()
		grace := h.Grace
		if come == h.signals.Second() {
			grace = 0
		}
		h.cancel(signalName(sig), grace)
	}
}

// cancel asks for the session's end, and notes who did.
func (h *host) cancel(by string, grace time.Duration) {
	h.asked.make(by, grace)
	h.change(func(s *folder.State) {
		if s.Cancel == nil && s.EndedAt == nil {
			s.Cancel = &folder.Cancel{At: time.Now().UTC(), By: by, Grace: grace.String()}
		}
	})
	h.log.linef("cancelled by %s", by)
}

// conclude decides what the session came to, keeps the report, frees everything, and
// delivers the report.
func (h *host) conclude() Outcome {
	hurry := h.asked.next()
	h.closeQueue()
	h.takeStock()
	c := h.conclusion()
	facts := factsOf(h.snapshot())
	facts.MemoryMax = h.MemoryMax
	d := Decide(facts)
	unkept := c.keep(d)
	readersGone := h.stopServing()
	ctx, cancel := withinUnless(hurry, terminalWait) // the report is kept: others may send it
	defer cancel()
	h.endRunning(ctx)
	delivered := c.deliver(ctx, unkept)
	h.tellEnd(hurry, d)
	h.storeRest(hurry)
	<-readersGone
	h.cleanUp()
	return Outcome{Decision: d, Delivered: delivered}
}

// withinUnless is within, and ends as soon as hurry is closed.
func withinUnless(hurry <-chan struct{}, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := within(limit)
	go func() {
		select {
		case <-hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (h *host) conclusion() *conclusion {
	ctx := context.Background()
	return &conclusion{
		record: h.record, box: h.box, guild: h.guild, log: h.log, each: h.fates(),
		transcript: func(w io.Writer) error {
			if h.store == nil {
				return errors.New("the session ended before its transcript was opened")
			}
			return h.store.Transcript(ctx, w)
		},
	}
}

// cleanUp leaves nothing but the record. Another process may have the session from
// then on.
func (h *host) cleanUp() {
	if err := errors.Join(clean(h.lock.Folder()), removePromptDir(h.snapshot())); err != nil {
		h.warn(err.Error())
	}
	step(stepCleaned)
	h.change(func(s *folder.State) { s.Host, s.Guardian, s.Mark = nil, nil, "" })
	step(stepOver)
	if h.guard != nil {
		h.guard.Dismiss()
	}
	h.log.close()
	_ = h.lock.Release() // the process's end would release it as well
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return sig.String()
}
