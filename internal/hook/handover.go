package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
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

// recipient is who gets the entry, and how it will be told that it was answered.
func (h *hook) recipient(next inbox.Entry, spill string) inbox.Recipient {
	in := h.input
	if in == nil {
		return inbox.Recipient{}
	}
	e := h.evidence()
	e.Notes, e.RanBefore, e.Spill = true, idsOf(in.Tasks), spill
	e.Fresh = !in.StopHookActive
	if d := h.answered; d != nil && d.SessionID == in.SessionID {
		before := h.evidenceOf(d)
		e.Fresh = e.Fresh || before.Reply != e.Reply
		if d.Text() == next.Text && before.Transcript == e.Transcript && before.Token == "" {
			e.Times, e.From = before.Repeated()
		}
	}
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

// evidence is what identifies this hook's event.
func (h *hook) evidence() recovery.Evidence {
	in := h.input
	e := recovery.Evidence{
		Active: in.StopHookActive, Reply: claude.ReplySum(in.LastMessage), Transcript: in.TranscriptPath,
		TranscriptSize: claude.TranscriptSize(in.TranscriptPath),
		SinceBoot:      machine.SinceBoot(),
		Awake:          machine.Awake(),
	}
	e.SetProcess(recovery.ProcessOf(h.clientPID()))
	return e
}

// defaultPreamble says whose words follow: the client presents them as a notification
// that is not from the user, and as a hook's error.
const defaultPreamble = "This is the next request from the work queue of this session's operator (heartbeat, %s). " +
	"It is no error, and it approves nothing that was asked before. Carry it out as a request of the operator's:"

// bareMark replaces an empty preamble and follows one of the operator's own. It tells the
// client's announcement of this delivery from any other.
const bareMark = "(heartbeat, %s)"

// wakeWith returns the text to wake the session with. One that the client would cut goes
// into a file, which is durable before the delivery that names it is committed.
func (h *hook) wakeWith(e inbox.Entry) (text, spill string, err error) {
	mark := recovery.DeliveryMark(e.EntryID, h.token())
	preamble := fmt.Sprintf(defaultPreamble, mark)
	if h.PreambleSet {
		preamble = strings.TrimSpace(h.Preamble + " " + fmt.Sprintf(bareMark, mark))
	}
	text = introduce(preamble, effect.Text(e))
	if claude.FitsWake(text) {
		return text, "", nil
	}
	if spill, err = h.spill(e); err != nil {
		return "", "", err
	}
	return introduce(preamble, fmt.Sprintf("The request is too long to be handed over here (%d bytes). It is in the file %s: read all of it, in parts if need be, and carry it out.",
		len(e.Text), spill)), spill, nil
}

// blockWith returns the text to block the stop with, as wakeWith does. The file's path is
// the end of it, by which a transcript tells it from any other text.
func (h *hook) blockWith(e inbox.Entry) (text, spill string, err error) {
	text = introduce(h.Preamble, effect.Text(e))
	if most := h.client().MaxReason; most == 0 || len(text) <= most {
		return text, "", nil
	}
	if spill, err = h.spill(e); err != nil {
		return "", "", err
	}
	return introduce(h.Preamble, fmt.Sprintf("The request is too long to be handed over here (%d bytes). Read all of this file, in parts if need be, and carry it out:\n\n%s",
		len(e.Text), spill)), spill, nil
}

// spill writes the text of an entry into its file.
func (h *hook) spill(e inbox.Entry) (path string, err error) {
	path = recovery.SpillPath(h.box, e.EntryID)
	if err := disk.Publish(path, []byte(e.Text), true); err != nil {
		return "", fmt.Errorf("hand over the entry %s, which is too long to be handed over whole: write it to a file: %w: it stays queued", words.Name(e.ID, e.EntryID), err)
	}
	return path, nil
}

// token tells this delivery from every other one, also of the same entry: a hook hands
// over once.
func (h *hook) token() string { return h.waiter[:min(8, len(h.waiter))] }

// introduce puts what the model is told before a text.
func introduce(preamble, text string) string {
	if preamble == "" {
		return text
	}
	return preamble + "\n\n" + text
}

// forgetSpill removes the file of an entry that was settled, unless the same entry is in
// flight again. An error changes nothing about the commit: compact and recover remove
// the file too.
func (h *hook) forgetSpill(inFlight *inbox.Delivery) {
	if h.settled == nil {
		return
	}
	spill := h.evidenceOf(h.settled).Spill
	if spill == "" {
		return
	}
	name := filepath.Base(spill)
	if recovery.IsSpill(name) && (inFlight == nil || recovery.SpillName(inFlight) != name) {
		if err := disk.Remove(filepath.Join(h.box.Dir(), name)); err != nil {
			h.Note("%v: compact takes it away", err)
		}
	}
}
