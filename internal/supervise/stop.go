package supervise

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/internal/claim"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/orchestrate"
)

// windDown is a warm end of the work, by SIGTERM or the end of --timeout: delivery ends, and the
// entry in flight has until the hard end to be answered.
type windDown struct {
	asked context.Context        // done with a warm stop or a hard end
	over  context.Context        // done with a hard end: another signal, or the end of --drain-timeout
	why   atomic.Pointer[ending] // of a warm stop, or of the loss of the inbox's lock
	cut   context.CancelFunc     // makes the hard end
	lost  sync.Once              // reports the loss of the lock
	// trouble is the last error of holding delivery back, "" for none.
	trouble string
}

// A launcher's sign begins with ItEnds once it has an order to end, and with ItEndsAtOnce once no entry in flight can be
// answered any more: heartbeat stop goes by that.
const ItEnds, ItEndsAtOnce = "it ends", "it ends at once"

// heedStop starts to wait for whatever ends the work, until callOff.
func (r *run) heedStop() (callOff func()) {
	var ask context.CancelFunc
	r.stop.over, r.stop.cut = r.Terminal.Signals.Context()
	r.stop.asked, ask = context.WithCancel(r.stop.over)
	var late <-chan time.Time
	if r.Terminal.Timeout > 0 {
		late = time.After(r.Terminal.Timeout)
	}
	go func() {
		drained, ordered := make(<-chan time.Time), &ending{reason: Stopped, detail: "it was told to stop"}
		select {
		case <-r.Terminal.Signals.Warm():
			r.stop.why.Store(r.signalled(syscall.SIGTERM))
		case <-r.Stop:
			r.stop.why.Store(ordered)
		case <-late:
			r.stop.why.Store(&ending{reason: TimedOut, detail: "the time was over (--timeout " + r.Terminal.Timeout.String() + ")"})
			drained = time.After(r.DrainTimeout)
		case <-r.stop.over.Done():
			select {
			case <-r.Stop: // the hard end came right after the stop
				r.stop.why.Store(ordered)
			default:
			}
			return
		}
		if r.Warm {
			drained = time.After(r.DrainTimeout)
			extendTimeout(r.DrainTimeout + 4*r.Terminal.Grace + endTime) // for the session, its entry, the results and the notifications
		}
		r.sign.say(ItEnds)
		ask()
		select {
		case <-drained:
			r.stop.cut()
		case <-r.stop.over.Done():
		}
	}()
	return r.stop.cut
}

// lost returns an error once the inbox's folder, or the lock in it, is no longer the one that this launcher works on.
// That is a hard end: a second launcher may work in the new folder, where this one must settle nothing.
func (r *run) lost() error {
	err := claim.Lost(r.box, r.lock)
	if err != nil {
		r.stop.lost.Do(func() {
			r.Line(time.Now(), "the session is ended: "+err.Error())
			r.stop.why.CompareAndSwap(nil, &ending{reason: Trouble, detail: err.Error(), logged: true})
			r.stop.cut()
		})
	}
	return err
}

// stopped returns why the work has to end, nil if it goes on.
func (r *run) stopped() *ending {
	if why := r.stop.why.Load(); why != nil {
		return why
	}
	if sig, _ := r.Terminal.Signals.Signal(); sig != 0 {
		return r.signalled(sig)
	}
	return nil
}

// stopRetry is the pause between tries to hold delivery back.
const stopRetry = time.Second

// endWarm ends a session after a warm stop once it has no entry in flight, or at the hard end.
func (r *run) endWarm(s *session) {
	select {
	case <-s.over:
		return
	case <-r.stop.asked.Done():
	}
	once := ItEnds + " once the entry in flight is answered"
	if r.Warm {
		once += ", at the latest after " + r.DrainTimeout.String()
	}
	for held, look := false, time.After(0); ; {
		select {
		case <-s.over:
			return
		case <-r.stop.over.Done():
			r.sign.say(ItEndsAtOnce)
			s.end(verdict{stopped: true, text: "it had not answered its entry in time"})
			return
		case <-r.follow.changed:
		case <-look:
		}
		flying := InFlight(r.box.Dir())
		if !held {
			if flying, held = r.holdBack(); !held {
				look = time.After(stopRetry)
			}
		}
		r.sign.say(once)
		switch {
		case flying:
		case orchestrate.Stepping(r.box, r.Runs.Dirs), // by its hook
			r.Attended && !s.entered.mayEnd(s.sight().Kind):
			look = time.After(terminal.MayEndEvery)
		default:
			s.end(verdict{stopped: true, text: "nothing is in flight"})
			return
		}
	}
}

// holdBack stops delivery and reports whether an entry is in flight. If the stop cannot be committed, no
// delivery can be committed either, or the session is ended amid one.
func (r *run) holdBack() (flying, held bool) {
	tx, err := r.box.Begin(r.stop.over)
	if err == nil {
		flying = tx.InFlight() != nil
		if err = r.lost(); err == nil { // otherwise it may hold back another launcher's work
			err = tx.Holds().BeginStop()
		}
		if err == nil {
			err = tx.Commit()
		}
		err = errors.Join(err, tx.Close())
	}
	if err == nil {
		return flying, true
	}
	if text := "what waits cannot be held back yet: " + err.Error(); text != r.stop.trouble && r.stop.over.Err() == nil {
		r.stop.trouble = text
		r.Line(time.Now(), text)
	}
	return InFlight(r.box.Dir()), false
}
