package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// handOver hands the entry in flight over, and notes that it did. If nobody got the text, the entry goes back to the
// queue. A text that wakes the session goes out as the hook ends.
func (h *hook) handOver(ctx context.Context, tx *inbox.Tx, text string) error {
	if h.Rewake {
		h.wakeText = text
		return nil
	}
	err := readable(h.Out)
	if err == nil {
		out := h.Out
		if out == os.Stdout {
			out = rawFile(unix.Stdout)
		}
		err = claude.WriteBlock(out, text, claude.Form(h.Form), h.message)
	}
	if err != nil {
		return h.takeBack(tx, err)
	}
	if ctx.Err() != nil {
		return nil // the client gave the hook up, and its transcript will show whether it took the decision
	}
	if err := tx.HandedOver(); err != nil {
		h.Note("%v: the transcript will show whether the text went out", err)
	}
	return nil
}

// readable refuses a stdout that nobody reads. A closed stdout shows as the null device too, because Go opens that in
// its place.
func readable(stdout io.Writer) error {
	var out, null unix.Stat_t
	if stdout == os.Stdout && unix.Fstat(unix.Stdout, &out) == nil && out.Mode&unix.S_IFMT == unix.S_IFCHR &&
		unix.Stat(os.DevNull, &null) == nil && null.Mode&unix.S_IFMT == unix.S_IFCHR && out.Rdev == null.Rdev {
		return errors.New("stdout is closed, or the null device, where nobody reads it")
	}
	return nil
}

// takeBack gives the entry in flight back to the queue, because its text did not go out.
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

// rawFile writes to a descriptor by system calls alone. At a broken pipe behind os.Stdout, Go would end the process before
// it could give the entry back.
type rawFile int

func (fd rawFile) Write(b []byte) (done int, _ error) {
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

// announcement returns what to show at the terminal of an entry, "" for nothing.
func (h *hook) announcement(e inbox.Entry) string {
	if h.runs != nil {
		if text := h.runs.Announce(e); text != "" {
			return "heartbeat: " + words.Brief(text)
		}
	}
	if !h.Announce {
		return ""
	}
	text := "heartbeat: entry " + words.Brief(cmp.Or(e.ID, words.Short(e.EntryID)))
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	return text
}

// recipient returns who gets the entry, with the evidence by which a later Stop is judged.
func (h *hook) recipient(next inbox.Entry, spill string) inbox.Recipient {
	in := h.input
	switch {
	case in == nil:
		return inbox.Recipient{}
	case h.Rewake:
		return inbox.Recipient{SessionID: in.SessionID, Evidence: h.wokenWith(spill).Encode()}
	}
	var ran []string
	for _, t := range in.Tasks {
		ran = append(ran, t.ID)
	}
	e := h.evidence()
	e.Notes, e.RanBefore, e.Spill = true, strings.Join(ran, " "), spill
	e.Fresh = !in.StopHookActive
	if d := h.answered; d != nil && d.SessionID == in.SessionID {
		before := recovery.EvidenceOf(d)
		e.Fresh = e.Fresh || before.Reply != e.Reply
		if d.Text() == next.Text && before.Transcript == e.Transcript && before.Token == "" {
			e.Times, e.From = before.Repeated()
		}
	}
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

func (h *hook) evidence() recovery.Evidence {
	in := h.input
	return recovery.Evidence{
		Active: in.StopHookActive, Reply: claude.ReplySum(in.LastMessage), Transcript: in.TranscriptPath,
		TranscriptSize: claude.TranscriptSize(in.TranscriptPath),
		SinceBoot:      machine.SinceBoot(),
		Awake:          machine.Awake(),
		Process:        inbox.ProcessOf(h.clientPID()),
	}
}

// defaultPreamble tells the model whose request follows. The client presents the text as a hook's error, in a
// notification that is not the user's.
const defaultPreamble = "This is the next request from the work queue of this session's operator (heartbeat, %s). " +
	"It is no error, and it approves nothing that was asked before. Carry it out as a request of the operator's:"

// bareMark replaces an empty preamble, and follows the operator's own. It distinguishes this delivery's announcement.
const bareMark = "(heartbeat, %s)"

// textOf returns the text of an entry behind a preamble. A text that the client would cut goes into a file, which is
// durable before the delivery that names it is committed. A text that blocks the stop then ends in the file's path, which
// distinguishes it in a transcript.
func (h *hook) textOf(e inbox.Entry) (text, spill string, err error) {
	preamble, most := h.Preamble, h.client().MaxReason
	where := "Read all of this file, in parts if need be, and carry it out:\n\n%s"
	if h.Rewake {
		mark := recovery.DeliveryMark(e.EntryID, h.token())
		if preamble = fmt.Sprintf(defaultPreamble, mark); h.PreambleSet {
			preamble = strings.TrimSpace(h.Preamble + " " + fmt.Sprintf(bareMark, mark))
		}
		where = "It is in the file %s: read all of it, in parts if need be, and carry it out."
	}
	text = introduce(preamble, effect.Text(e))
	if h.Rewake && claude.FitsWake(text) || !h.Rewake && (most == 0 || len(text) <= most) {
		return text, "", nil
	}
	spill = recovery.SpillPath(h.box, e.EntryID)
	if err := disk.Publish(spill, []byte(e.Text), true); err != nil {
		return "", "", fmt.Errorf("hand over the entry %s, which is too long to be handed over whole: write it to a file: %w: it stays queued",
			words.Name(e.ID, e.EntryID), err)
	}
	return introduce(preamble, fmt.Sprintf("The request is too long to be handed over here (%d bytes). "+where, len(e.Text), spill)), spill, nil
}

// token distinguishes this delivery from all others, even of the same entry, since a hook hands over only once.
func (h *hook) token() string { return h.Waiter[:min(8, len(h.Waiter))] }

func introduce(preamble, text string) string {
	if preamble == "" {
		return text
	}
	return preamble + "\n\n" + text
}
