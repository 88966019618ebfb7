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
	Active         bool   // stop_hook_active of that Stop
	Reply          string // the hash of what the assistant had said
	Fresh          bool   // at the Stop before, if any, it had said something else
	Transcript     string // its path
	TranscriptSize int64  // -1 where there is no evidence
	// Times is how often the very text was delivered in a row, if more than once, since
	// the transcript was From long.
	From      int64
	Times     int64
	Boot      string
	SinceBoot int64 // nanoseconds
	// Awake is the same by the clock of [machine.Awake]. Deliveries of earlier releases
	// have none.
	Awake  int64
	Client int64 // process id of the client, 0 if unknown
	// ClientStart tells the client's process from a later one with the same number, and
	// Namespace is the PID namespace of the number.
	ClientStart int64
	Namespace   string
	// Notes says that the delivering hook also notes when the text went out: see
	// [inbox.Tx.HandedOver].
	Notes bool
	Prompt
	Wake
	TaskWait
}

// Wake is kept with a delivery that was to wake its session. One that blocked a stop has
// its Spill alone.
type Wake struct {
	Woken bool
	// Bound says that the client picked the text up: the delivery's session and prompt
	// are those of the turn that it became.
	Bound bool
	// Before is the prompt of the turn before that one, "" if it is not known. The hook at
	// that turn's end may be later than the one that bound this.
	Before string
	// Token is in the text that the session was woken with, and in that of no other
	// delivery. Deliveries of earlier releases have none.
	Token string
	// Spill is the file that the text is in, where it was too long to be handed
	// over whole.
	Spill string
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
	c.Int("client_pid", &e.Client)
	c.NonZero("client_start", &e.ClientStart)
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

// Encode is the JSON object that is kept with the delivery.
func (e Evidence) Encode() []byte {
	var o flat.Object
	e.members(flat.To(&o))
	return o.End()
}

// EvidenceOf reads what is kept with a delivery. One that another program made has none.
func EvidenceOf(d *inbox.Delivery) (e Evidence) {
	m, err := flat.Parse(d.Evidence)
	if err != nil {
		return Evidence{TranscriptSize: -1}
	}
	e.members(flat.From(m))
	return e
}

// maxTimes bounds how much of a transcript is read to count the deliveries of one
// text in a row. The client lags behind by one or two of them.
const maxTimes = 64

// Repeated returns how often the text of e is delivered in a row once it is delivered
// again right after e, and where in the transcript that began.
func (e Evidence) Repeated() (times, from int64) {
	switch {
	case e.Times >= maxTimes || e.TranscriptSize < 0:
		return 0, 0
	case e.Times > 1:
		return e.Times + 1, e.From
	}
	return 2, e.TranscriptSize
}

// Handed is what the client's prompt contains when it picks the entry up.
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

// Worked is for how long this delivery of the entry was worked on so far. The time that
// the machine slept is not counted, nor that after its client died, as far as its
// transcript tells when that was: nobody may have looked for hours.
func Worked(d *inbox.Delivery) time.Duration {
	e := EvidenceOf(d)
	took := time.Since(d.DeliveredAt) // the clock may have been set since
	if e.Boot != "" && e.Boot == machine.BootID() {
		if took = time.Duration(machine.SinceBoot() - e.SinceBoot); e.Awake > 0 {
			took = time.Duration(machine.Awake() - e.Awake)
		}
	}
	took = max(0, took)
	if alive, known := machine.Lives(e.Boot, e.Namespace, int(e.Client), e.ClientStart); alive || !known {
		return took
	}
	info, err := disk.StatFile(e.Transcript)
	if err != nil || !info.IsRegular {
		return 0
	}
	return min(took, max(0, time.Unix(0, info.Mtime).Sub(d.DeliveredAt)))
}

// Took is for how long the entry in flight was worked on, all its deliveries together.
func Took(d *inbox.Delivery) time.Duration { return d.Took + Worked(d) }

// TaskWait is kept with a delivery whose turn ended and left tasks running in the
// background. The entry is answered once they ended and the session reported on them.
type TaskWait struct {
	Held bool
	// HeldBoot and HeldSince (nanoseconds, by [machine.Awake]) are when that began.
	HeldBoot  string
	HeldSince int64
	// HeldReply is what the last turn of the entry said.
	HeldReply string
	// Tasks are those that ran so far, a JSON array as in a result, and RanBefore the
	// ids of those that ran when the entry was delivered: they are not its own.
	Tasks, RanBefore string
}

// Running are those tasks that an entry waits for.
func (h TaskWait) Running(tasks []claude.Task) (running []claude.Task) {
	before := strings.Fields(h.RanBefore)
	for _, t := range tasks {
		if !slices.Contains(before, t.ID) {
			running = append(running, t)
		}
	}
	return running
}

// Wait holds the entry for tasks that run, and keeps what the turn said.
func (h TaskWait) Wait(running []claude.Task, reply string) TaskWait {
	if !h.Held {
		h.Held, h.HeldBoot, h.HeldSince = true, machine.BootID(), machine.Awake()
	}
	h.HeldReply = reply
	all := []byte{'['}
	add := func(id, kind, text string) {
		var o flat.Object
		o.String("id", id)
		o.Text("type", kind)
		o.Text("description", text)
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, o.End()...)
	}
	known := map[string]bool{}
	for _, t := range flat.Value(h.Tasks).Items() {
		known[t.Get("id").Text()] = true
		add(t.Get("id").Text(), t.Get("type").Text(), t.Get("description").Text())
	}
	for _, t := range running {
		if !known[t.ID] {
			add(t.ID, t.Type, t.Text)
		}
	}
	h.Tasks = string(append(all, ']'))
	return h
}

// Over reports whether the entry has waited for that long, as far as can be told.
func (h TaskWait) Over(limit time.Duration) bool {
	return h.Held && (machine.OtherBoot(h.HeldBoot) || time.Duration(machine.Awake()-h.HeldSince) >= limit)
}

// TellsOf reports whether the client sent this prompt to say that one of the tasks has
// ended.
func (h TaskWait) TellsOf(prompt string) bool {
	if !h.Held || !strings.HasPrefix(strings.TrimSpace(prompt), claude.TaskNotification) {
		return false
	}
	for _, t := range flat.Value(h.Tasks).Items() {
		if strings.Contains(prompt, "<task-id>"+t.Get("id").Text()+"</task-id>") {
			return true
		}
	}
	return false
}

const spillPrefix, spillSuffix = ".woken-", ".txt"

// SpillPath is the file for a text that is too long to wake a session with, the
// same for every delivery of an entry.
func SpillPath(box *inbox.Inbox, entryID string) string {
	return filepath.Join(box.Dir(), spillPrefix+entryID[:min(12, len(entryID))]+spillSuffix)
}

// SpillName is the name of an entry's file in the inbox's directory, which may be
// called otherwise by now.
func SpillName(d *inbox.Delivery) string { return filepath.Base(EvidenceOf(d).Spill) }

// IsSpill reports whether a file is such a text, whole or half-written.
func IsSpill(name string) bool {
	name = strings.TrimSuffix(name, ".tmp")
	return strings.HasPrefix(name, spillPrefix) && strings.HasSuffix(name, spillSuffix)
}

// ForgetSpills removes the files of all entries but the one in flight, and what a killed
// hook left half-written. The caller holds the inbox's lock.
func ForgetSpills(box *inbox.Inbox, inFlight *inbox.Delivery) (err error) {
	kept := ""
	if inFlight != nil {
		kept = SpillName(inFlight)
	}
	names, err := os.ReadDir(box.Dir())
	for _, n := range names {
		if IsSpill(n.Name()) && n.Name() != kept {
			err = errors.Join(err, disk.Remove(filepath.Join(box.Dir(), n.Name())))
		}
	}
	return err
}
