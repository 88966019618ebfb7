package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// print hands the entry in flight over, and notes that it did. What nobody got
// waits again.
func (h *hook) print(ctx context.Context, tx *inbox.Tx, text string) error {
	err := readable(h.Out)
	if err == nil {
		err = claude.WriteBlock(decisions(h.Out), text, claude.Form(h.Form), h.says)
	}
	if err != nil {
		return h.takeBack(tx, err)
	}
	if ctx.Err() != nil {
		return nil // a client that gave the hook up takes no decision: its transcript will tell
	}
	if err := tx.HandedOver(); err != nil {
		h.Note("%v: the transcript will tell", err)
	}
	return nil
}

// readable refuses a stdout that takes everything and shows nobody. A closed one is
// the null device too: Go opens that in its place.
func readable(stdout io.Writer) error {
	var out, null unix.Stat_t
	if stdout == os.Stdout && unix.Fstat(unix.Stdout, &out) == nil && out.Mode&unix.S_IFMT == unix.S_IFCHR &&
		unix.Stat(os.DevNull, &null) == nil && null.Mode&unix.S_IFMT == unix.S_IFCHR && out.Rdev == null.Rdev {
		return errors.New("stdout is closed, or the null device, where nobody reads it")
	}
	return nil
}

// takeBack gives the entry in flight back to the queue, since its text did not go
// out.
func (h *hook) takeBack(tx *inbox.Tx, why error) error {
	d := tx.InFlight()
	_, err := h.settle(tx, recovery.Sight{NotHandedOver: true, Charged: true})
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("%w: %w: the entry %s stays in flight: %w", errNotPrinted, why, words.Name(d.ID(), d.EntryID), err)
	}
	return fmt.Errorf("%w: %w: the entry %s waits again", errNotPrinted, why, words.Name(d.ID(), d.EntryID))
}

// decisions is where a decision is printed. Go ends a process that writes to a
// broken pipe at its stdout, before it could give the entry back.
func decisions(w io.Writer) io.Writer {
	if w == os.Stdout {
		return rawFile(unix.Stdout)
	}
	return w
}

// rawFile is a descriptor that is written to by way of the system alone.
type rawFile int

func (fd rawFile) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(fd), b[done:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
			if err != nil && err != unix.EINTR {
				return done, err
			}
		case err != nil:
			return done, err
		default:
			done += n
		}
	}
	return done, nil
}

// announcement is what the person at the terminal is shown of an entry, "" for
// nothing.
func (h *hook) announcement(e inbox.Entry) string {
	if h.runs != nil {
		if text := h.runs.Announce(e); text != "" {
			return "heartbeat: " + words.Brief(text)
		}
	}
	if !h.Announce {
		return ""
	}
	name := e.ID
	if name == "" {
		name = words.Short(e.EntryID)
	}
	text := "heartbeat: entry " + words.Brief(name)
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	return text
}
