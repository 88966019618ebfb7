package inbox

import "heartbeat/internal/journal"

// Tail reads the lines that come to an append-only file, even if somebody rotates
// it away, trims it or creates it anew. It takes no lock.
type Tail = journal.Tail

// TailResults reads .results.jsonl (a [Result] a line) from its last n lines on,
// from its start if n is negative.
func (b *Inbox) TailResults(n int) (*Tail, error) { return b.tail(journal.Results, n) }

// TailDeadLetters reads .dead-letter.jsonl as TailResults reads the results: a
// [DeadLetter] a line, and marks of what was requeued, see [ParseLetter].
func (b *Inbox) TailDeadLetters(n int) (*Tail, error) { return b.tail(journal.DeadLetters, n) }

// TailEvents reads .events.jsonl (an [Event] a line) as TailResults reads the
// results.
func (b *Inbox) TailEvents(n int) (*Tail, error) { return b.tail(journal.Events, n) }

func (b *Inbox) tail(k journal.Kind, n int) (*Tail, error) { return journal.OpenTail(b.fileOf(k), n) }
