package recover

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/host"
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
	Times     int
	Boot      string
	SinceBoot int64 // nanoseconds
	Client    int64 // process id of the client, 0 if unknown
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

// Encode is the JSON object that is kept with the delivery.
func (e Evidence) Encode() []byte {
	var o flat.Object
	o.Bool("stop_hook_active", e.Active)
	o.String("reply_sha256", e.Reply)
	if e.Fresh {
		o.Bool("fresh_reply", true)
	}
	o.Text("transcript_path", e.Transcript)
	o.Int("transcript_size", e.TranscriptSize)
	if e.Times > 1 {
		o.Int("times", int64(e.Times))
		o.Int("times_from", e.From)
	}
	o.String("boot", e.Boot)
	o.Int("since_boot_ns", e.SinceBoot)
	o.Int("client_pid", e.Client)
	if e.ClientStart != 0 {
		o.Int("client_start", e.ClientStart)
		o.Text("pid_namespace", e.Namespace)
	}
	if e.Notes {
		o.Bool("notes_handover", true)
	}
	e.Prompt.encode(&o)
	e.Wake.encode(&o)
	e.TaskWait.encode(&o)
	return o.End()
}

func (w Wake) encode(o *flat.Object) {
	if w.Woken {
		o.Bool("woken", true)
		o.Bool("bound", w.Bound)
		o.Text("prompt_before", w.Before)
		o.Text("token", w.Token)
	}
	o.Text("spill_file", w.Spill)
}

// EvidenceOf reads what is kept with a delivery. One that another program made has none.
func EvidenceOf(d *inbox.Delivery) Evidence {
	m, err := flat.Parse(d.Evidence)
	if err != nil {
		return Evidence{TranscriptSize: -1}
	}
	return Evidence{
		Active: m.Bool("stop_hook_active"), Reply: m.String("reply_sha256"),
		Transcript: m.String("transcript_path"), TranscriptSize: m.Int("transcript_size"),
		Boot: m.String("boot"), SinceBoot: m.Int("since_boot_ns"),
		Fresh: m.Bool("fresh_reply"), From: m.Int("times_from"), Times: int(m.Int("times")),
		Client: m.Int("client_pid"), ClientStart: m.Int("client_start"), Namespace: m.String("pid_namespace"),
		Notes: m.Bool("notes_handover"), Prompt: promptOf(m), Wake: wakeOf(m), TaskWait: taskWaitOf(m),
	}
}

func wakeOf(m *flat.Members) Wake {
	return Wake{
		Woken: m.Bool("woken"), Bound: m.Bool("bound"), Before: m.String("prompt_before"), Token: m.String("token"),
		Spill: m.String("spill_file"),
	}
}

// maxTimes bounds how much of a transcript is read to count the deliveries of one
// text in a row. The client lags behind by one or two of them.
const maxTimes = 64

// Repeated returns how often the text of e is delivered in a row once it is delivered
// again right after e, and where in the transcript that began.
func (e Evidence) Repeated() (times int, from int64) {
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

// Worked is for how long this delivery of the entry was worked on so far. The time after
// its client died is not counted, as far as its transcript tells when that was: nobody
// may have looked for hours.
func Worked(d *inbox.Delivery) time.Duration {
	e := EvidenceOf(d)
	took := time.Since(d.DeliveredAt) // the clock may have been set since
	if e.Boot != "" && e.Boot == host.BootID() {
		took = time.Duration(host.SinceBoot() - e.SinceBoot)
	}
	took = max(0, took)
	if alive, known := host.Lives(e.Boot, e.Namespace, int(e.Client), e.ClientStart); alive || !known {
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
