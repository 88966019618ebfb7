package evidence

import (
	"heartbeat/inbox"
	"heartbeat/internal/flat"
)

// Evidence identifies the Stop that delivered an entry.
type Evidence struct {
	Active         bool   // stop_hook_active of that Stop
	Reply          string // the hash of what the assistant had said
	Transcript     string // its path
	TranscriptSize int64  // -1 where there is no evidence
	Boot           string
	SinceBoot      int64 // nanoseconds
	Client         int64 // process id of the client, 0 if unknown
	// Notes says that the hook which delivered the entry notes behind it that the
	// text went out: see [inbox.Tx.HandedOver].
	Notes bool
	Wake
}

// Wake is kept with a delivery that was to wake its session.
type Wake struct {
	Woken bool
	// Bound says that the client took the text up: the delivery's session and
	// prompt are those of the turn that it became.
	Bound bool
	// Token is in the text that the session was woken with, and in that of no other
	// delivery. Deliveries of earlier releases have none.
	Token string
	// Spill is the file that the text is in, where it was too long to be handed
	// over whole.
	Spill string
	// ClientStart tells the client's process from a later one of its number.
	ClientStart int64
	// Namespace is where the client's number is that process's.
	Namespace string
}

// Encode is the JSON object that is kept with the delivery.
func (e Evidence) Encode() []byte {
	var o flat.Object
	o.Bool("stop_hook_active", e.Active)
	o.String("reply_sha256", e.Reply)
	o.Text("transcript_path", e.Transcript)
	o.Int("transcript_size", e.TranscriptSize)
	o.String("boot", e.Boot)
	o.Int("since_boot_ns", e.SinceBoot)
	o.Int("client_pid", e.Client)
	if e.Notes {
		o.Bool("notes_handover", true)
	}
	e.Wake.encode(&o)
	return o.End()
}

func (w Wake) encode(o *flat.Object) {
	if !w.Woken {
		return
	}
	o.Bool("woken", true)
	o.Bool("bound", w.Bound)
	o.Text("token", w.Token)
	o.Text("spill_file", w.Spill)
	o.Int("client_start", w.ClientStart)
	o.Text("pid_namespace", w.Namespace)
}

// Of reads what is kept with a delivery. One that another program made has none.
func Of(d *inbox.Delivery) Evidence {
	m, err := flat.Parse(d.Evidence)
	if err != nil {
		return Evidence{TranscriptSize: -1}
	}
	return Evidence{
		Active: m.Bool("stop_hook_active"), Reply: m.String("reply_sha256"),
		Transcript: m.String("transcript_path"), TranscriptSize: m.Int("transcript_size"),
		Boot: m.String("boot"), SinceBoot: m.Int("since_boot_ns"),
		Client: m.Int("client_pid"), Notes: m.Bool("notes_handover"), Wake: wakeOf(m),
	}
}

func wakeOf(m *flat.Members) Wake {
	return Wake{
		Woken: m.Bool("woken"), Bound: m.Bool("bound"), Token: m.String("token"),
		Spill: m.String("spill_file"), ClientStart: m.Int("client_start"), Namespace: m.String("pid_namespace"),
	}
}

// Handed is what the client's prompt has in it when it takes the entry up.
func (w Wake) Handed(d *inbox.Delivery) string {
	switch {
	case w.Token != "":
		return Mark(d.EntryID, w.Token)
	case w.Spill != "":
		return w.Spill
	}
	return d.Text()
}

// Mark names one delivery in what the model reads.
func Mark(entryID, token string) string {
	return "entry " + entryID[:min(12, len(entryID))] + ", delivery " + token
}
