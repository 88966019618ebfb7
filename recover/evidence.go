package recover

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
)

// Evidence identifies the Stop that delivered an entry.
type Evidence struct {
	Active         bool   // of the Stop
	Reply          string // the hash of the assistant's last text
	Fresh          bool   // Reply differs from that of the Stop before, if there was one
	Transcript     string // path
	TranscriptSize int64  // in bytes; -1 without evidence
	// Times is how often this text was delivered in a row, if more than once. The first time, the transcript was From
	// bytes long.
	From      int64
	Times     int64
	SinceBoot int64 // nanoseconds, in the boot of Process
	// Awake is the time of the delivery by [machine.Awake], in nanoseconds. Deliveries of earlier releases have none.
	Awake int64
	// Process is the client's that got the entry. Until a session host has started its client, it is the host's own.
	inbox.Process
	Notes bool // the delivering hook also notes when the text went out: see [inbox.Tx.HandedOver]
	Prompt
	Wake
	TaskWait
}

// Prompt is kept with a delivery that is the prompt of a client about to start. It is in flight before the client
// exists. [inbox.Tx.HandedOver] is noted right before the client starts, so without that note nobody got the text.
type Prompt struct {
	Prompted bool
	// Start names this start of the client. Only that client's hook knows the name.
	Start string
	Hooks bool // nothing known keeps the client from running its hooks
	// BoundSeq is the commit (see [inbox.Tx.Seq]) in which the client's hook bound the delivery to the prompt that the
	// client made of it, 0 before.
	BoundSeq int64
}

// IsBound reports whether the client is known to have made a prompt of the text.
func (p Prompt) IsBound() bool { return p.BoundSeq != 0 }

// Wake is kept with a delivery that was to wake its session. A delivery that blocked a stop uses only Spill.
type Wake struct {
	Woken bool
	// Bound says that the client picked the text up: the delivery now names the session and prompt of the turn that
	// the text became.
	Bound bool
	// Before is the prompt of the turn before, "" if unknown. The hook at the end of that turn may run after the hook
	// that bound this delivery.
	Before string
	// Token occurs in the text that woke the session, and in no other delivery's. Deliveries of earlier releases have
	// none.
	Token string
	Spill string // the path of the file that holds the text if it was too long to hand over whole
}

// members lists what is kept, in the order in which it is written.
func (e *Evidence) members(c flat.Codec) {
	c.Bool("stop_hook_active", &e.Active)
	c.String("reply_sha256", &e.Reply)
	c.Flag("fresh_reply", &e.Fresh)
	c.Text("transcript_path", &e.Transcript)
	c.Int("transcript_size", &e.TranscriptSize)
	c.NonZero("times", &e.Times)
	c.NonZero("times_from", &e.From)
	c.String("boot", &e.Boot)
	c.Int("since_boot_ns", &e.SinceBoot)
	c.NonZero("awake_ns", &e.Awake)
	c.Count("client_pid", &e.PID)
	c.NonZero("client_start", &e.ProcessStart)
	c.Text("pid_namespace", &e.Namespace)
	c.Flag("notes_handover", &e.Notes)
	c.Flag("prompted", &e.Prompted)
	c.Text("start", &e.Start)
	c.Flag("hooks", &e.Hooks)
	c.NonZero("bound_seq", &e.BoundSeq)
	c.Flag("woken", &e.Woken)
	if e.Woken {
		c.Bool("bound", &e.Bound)
	}
	c.Text("prompt_before", &e.Before)
	c.Text("token", &e.Token)
	c.Text("spill_file", &e.Spill)
	c.Text("ran_before", &e.RanBefore)
	c.Flag("held", &e.Held)
	c.Text("held_boot", &e.HeldBoot)
	c.NonZero("held_since_boot_ns", &e.HeldSince)
	c.Text("held_reply", &e.HeldReply)
	tasks := json.RawMessage(e.Tasks)
	c.Raw("background_tasks", &tasks)
	e.Tasks = string(tasks)
}

// Encode returns the JSON object that is kept with the delivery.
func (e Evidence) Encode() []byte {
	var o flat.Object
	e.members(flat.To(&o))
	return o.End()
}

// EvidenceOf reads what is kept with a delivery. A delivery by another program has none.
func EvidenceOf(d *inbox.Delivery) (e Evidence) {
	m, err := flat.Parse(d.Evidence)
	if err != nil {
		return Evidence{TranscriptSize: -1}
	}
	e.members(flat.From(m))
	return e
}

// maxTimes bounds how much of a transcript is read to count deliveries of one text in a row. The client lags behind by
// one or two of them.
const maxTimes = 64

// Repeated returns how often the text of e will have been delivered in a row after one more delivery, and where in the
// transcript the row began.
func (e Evidence) Repeated() (times, from int64) {
	switch {
	case e.Times >= maxTimes || e.TranscriptSize < 0:
		return 0, 0
	case e.Times > 1:
		return e.Times + 1, e.From
	}
	return 2, e.TranscriptSize
}

// Handed returns the text that the client's prompt contains once it picks the entry up.
func (w Wake) Handed(d *inbox.Delivery) string {
	switch {
	case w.Token != "":
		return DeliveryMark(d.EntryID, w.Token)
	case w.Spill != "":
		return w.Spill
	}
	return d.Text()
}

// DeliveryMark names one delivery in what the model reads.
func DeliveryMark(entryID, token string) string {
	return "entry " + entryID[:min(12, len(entryID))] + ", delivery " + token
}

// Worked returns how long this delivery was worked on so far. It leaves out the time that the machine slept, and the
// time after the client died. The transcript's last change dates that death, which may have gone unseen for hours.
func Worked(d *inbox.Delivery) time.Duration {
	e := EvidenceOf(d)
	took := time.Since(d.DeliveredAt) // wrong if somebody has set the clock since
	if e.Boot != "" && e.Boot == machine.BootID() {
		if took = time.Duration(machine.SinceBoot() - e.SinceBoot); e.Awake > 0 {
			took = time.Duration(machine.Awake() - e.Awake)
		}
	}
	took = max(0, took)
	if !machine.LifeOf(e.Boot, e.Namespace, e.PID, e.ProcessStart).Ended() {
		return took
	}
	info, err := disk.StatFile(e.Transcript)
	if err != nil || !info.IsRegular {
		return 0
	}
	return min(took, max(0, time.Unix(0, info.Mtime).Sub(d.DeliveredAt)))
}

// Took returns how long the entry in flight was worked on, over all its deliveries.
func Took(d *inbox.Delivery) time.Duration { return d.Took + Worked(d) }

// TaskWait is kept with a delivery whose turn ended and left background tasks running. The entry counts as answered
// once they have ended and the session has reported on them.
type TaskWait struct {
	Held bool
	// HeldBoot and HeldSince (nanoseconds, by [machine.Awake]) say when the wait began.
	HeldBoot  string
	HeldSince int64
	HeldReply string // the reply of the entry's last turn
	// Tasks are the entry's tasks so far, a JSON array as in a result. RanBefore lists the ids of tasks that already
	// ran at the delivery, and are not the entry's.
	Tasks, RanBefore string
}

// Running returns those of tasks for which the entry waits.
func (h TaskWait) Running(tasks []claude.Task) []claude.Task {
	before := strings.Fields(h.RanBefore)
	return slices.DeleteFunc(slices.Clone(tasks), func(t claude.Task) bool { return slices.Contains(before, t.ID) })
}

// Wait returns h with the entry held for these tasks, and the reply of the turn kept.
func (h TaskWait) Wait(running []claude.Task, reply string) TaskWait {
	if !h.Held {
		h.Held, h.HeldBoot, h.HeldSince = true, machine.BootID(), machine.Awake()
	}
	h.HeldReply = reply
	all := h.tasks()
	for _, t := range running {
		if !slices.ContainsFunc(all, func(known inbox.Task) bool { return known.ID == t.ID }) {
			all = append(all, inbox.Task{ID: t.ID, Type: t.Type, Description: t.Text})
		}
	}
	raw, _ := flat.JSON(all) // strings always encode
	h.Tasks = string(raw)
	return h
}

func (h TaskWait) tasks() (all []inbox.Task) {
	_ = json.Unmarshal([]byte(h.Tasks), &all) // none if somebody edited the file
	return all
}

// Over reports whether the entry has waited for as long as limit. After a reboot, when nobody knows, it returns true.
func (h TaskWait) Over(limit time.Duration) bool {
	return h.Held && (machine.OtherBoot(h.HeldBoot) || time.Duration(machine.Awake()-h.HeldSince) >= limit)
}

// ReportsOn reports whether prompt is the client's report of the end of one of the tasks.
func (h TaskWait) ReportsOn(prompt string) bool {
	return h.Held && claude.IsTaskReport(prompt) && slices.ContainsFunc(h.tasks(), func(t inbox.Task) bool { return strings.Contains(prompt, "<task-id>"+t.ID+"</task-id>") })
}

const spillPrefix, spillSuffix = ".woken-", ".txt"

// SpillPath returns the file for a text that is too long to hand over whole. All deliveries of an entry share it.
func SpillPath(box *inbox.Inbox, entryID string) string {
	return filepath.Join(box.Dir(), spillPrefix+entryID[:min(12, len(entryID))]+spillSuffix)
}

// ForgetSpills removes all spill files but that of the entry in flight, and what a killed hook left half-written. The
// caller holds the inbox's lock.
func ForgetSpills(box *inbox.Inbox, inFlight *inbox.Delivery) (err error) {
	kept := ""
	if inFlight != nil {
		kept = filepath.Base(EvidenceOf(inFlight).Spill) // the directory may have been renamed since
	}
	names, err := os.ReadDir(box.Dir())
	for _, n := range names {
		name := n.Name()
		if strings.HasPrefix(name, spillPrefix) && strings.HasSuffix(strings.TrimSuffix(name, ".tmp"), spillSuffix) && name != kept {
			err = errors.Join(err, disk.Remove(filepath.Join(box.Dir(), name)))
		}
	}
	return err
}
