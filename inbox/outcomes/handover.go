package outcomes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Handover is a result or a dead letter in the form that a consumer is handed.
type Handover struct {
	V    int    `json:"v"`
	Kind string `json:"kind"` // HandedResult or HandedLetter
	// Key is unique to this item, and the same each time the item is handed over.
	Key      string                     `json:"key"`
	Consumer string                     `json:"consumer"`
	Inbox    string                     `json:"inbox"`
	ID       string                     `json:"id,omitempty"` // the envelope's own id
	EntryID  string                     `json:"entry_id"`
	At       time.Time                  `json:"at"` // the time of its commit
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Line is the line of the file, with U+FFFD for what is not UTF-8.
	Line json.RawMessage `json:"line"`
}

// The kinds of [Handover].
const (
	HandedResult = "result"
	HandedLetter = "dead_letter"
)

// Consuming is a running consumer. No other process runs under the same name.
type Consuming struct {
	box   *inbox.Inbox
	state Consumer
	lock  *disk.Lock
	heads map[journal.Kind]*head
	notes []string
	// Left is the mark of a killed predecessor. The process it started may still run.
	Left   string
	marked bool
}

// head is the next item of a file, and the place behind it.
type head struct {
	Handover
	place Place
}

// Consume starts a consumer. A new consumer begins with the oldest results and dead letters that are kept, or if fresh
// is set, with the next ones. Consume waits for another process of the same name; wait 0 means as long as ctx allows.
func Consume(ctx context.Context, b *inbox.Inbox, name string, fresh bool, wait time.Duration) (_ *Consuming, err error) {
	if err := CheckConsumer(name); err != nil {
		return nil, err
	}
	if _, err := b.MakeGood(ctx); err != nil { // completes what a killed process committed
		return nil, err
	}
	c := &Consuming{box: b, heads: map[journal.Kind]*head{}}
	if c.lock, err = lockConsumer(ctx, b, name, wait); err != nil {
		return nil, err
	}
	left, err := c.lock.File().ReadUpTo(maxMark)
	if c.Left = string(left); err == nil {
		c.state, err = readConsumer(b, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = c.begin(ctx, name, fresh)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// begin registers the consumer under the inbox's lock, so that nothing is trimmed meanwhile.
func (c *Consuming) begin(ctx context.Context, name string, fresh bool) (err error) {
	t, err := c.box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if all, err := Consumers(c.box); err != nil {
		return err
	} else if len(all) >= maxConsumers {
		return fmt.Errorf("the inbox has %d consumers, and may have no more: heartbeat results --forget NAME forgets one that is gone for good", len(all))
	}
	c.state = Consumer{Name: name, Since: now(c.box)}
	for _, kind := range handedKinds {
		p, err := startAt(fileOf(c.box, kind), fresh, c.state.Since, whenOf[kind])
		if err != nil {
			return err
		}
		*c.state.place(kind) = p
	}
	return c.Save()
}

// maxMark bounds what is read of a mark.
const maxMark = 4 << 10

// Mark records what is started, for the successor of a killed process.
func (c *Consuming) Mark(mark string) error {
	c.marked = true
	return c.lock.Sign(mark)
}

// Close ends the consumer and erases its mark.
func (c *Consuming) Close() (err error) {
	if c.marked {
		err = c.lock.Sign("")
	}
	return errors.Join(err, c.lock.Release())
}

// Save writes the consumer's progress.
func (c *Consuming) Save() error {
	data, err := json.Marshal(c.state)
	if err == nil {
		err = c.lock.Check()
	}
	if err == nil {
		err = disk.Publish(consumerFile(c.box, c.state.Name), data, true)
	}
	if err != nil {
		return fmt.Errorf("note what the consumer %s was handed: %w", c.state.Name, err)
	}
	return nil
}

// Notes returns sentences about what could not be handed over, each of them once.
func (c *Consuming) Notes() []string {
	notes := c.notes
	c.notes = nil
	return notes
}

// Next returns the item to hand over now, nil if there is none. It returns the same item until [Consuming.Done].
func (c *Consuming) Next() (*Handover, error) {
	if err := c.lock.Check(); err != nil {
		return nil, err
	}
	results, letters := journal.Results, journal.DeadLetters
	// A commit's lines are in all files before the next commit. So once a line is seen in one file,
	// everything committed before it is found in the other.
	for _, kind := range []journal.Kind{results, letters, results} {
		if err := c.findHead(kind); err != nil {
			return nil, err
		}
	}
	if h := c.heads[c.first()]; h != nil {
		return &h.Handover, nil
	}
	return nil, nil
}

// first returns the file whose head was committed first. One commit adds results before dead letters.
func (c *Consuming) first() journal.Kind {
	r, l := c.heads[journal.Results], c.heads[journal.DeadLetters]
	if r == nil || l != nil && l.At.Before(r.At) {
		return journal.DeadLetters
	}
	return journal.Results
}

// findHead finds the next item of a file, unless it is known.
func (c *Consuming) findHead(kind journal.Kind) error {
	if c.heads[kind] != nil {
		return nil
	}
	var found *head
	place := c.state.place(kind)
	next, missed, err := EachBehind(*place, fileOf(c.box, kind), whenOf[kind], func(l []byte, at time.Time) bool {
		found = &head{Handover: c.handover(kind, bytes.Clone(l), at)}
		return false
	})
	if err != nil {
		return fmt.Errorf("read what to hand over: %w", err)
	}
	if missed {
		c.notes = append(c.notes, fmt.Sprintf("the line of %s that the consumer %s had last is in no file beside the inbox any more: if that was rotated or restored meanwhile, results may not have been handed over",
			fileOf(c.box, kind), c.state.Name))
	}
	if found == nil {
		*place = next // behind lines that are not handed over
		return nil
	}
	found.place = next
	c.heads[kind] = found
	return nil
}

func (c *Consuming) handover(kind journal.Kind, line []byte, at time.Time) Handover {
	h := Handover{V: 1, Kind: HandedResult, Consumer: c.state.Name, Inbox: c.box.Path(), At: at, Line: lines.Valid(line)}
	if kind == journal.DeadLetters {
		h.Kind = HandedLetter
	}
	l, _, ok := inbox.ParseLetter(line) // results have the same members, as far as they are used here
	if !ok {                            // a member of a result has the wrong type
		l.EntryID = flat.Value(line).Get("entry_id").Text() // whenOf found it
	}
	h.ID, h.EntryID, h.Metadata = l.ID, l.EntryID, l.Metadata
	// The key uses neither the line's offset nor its spelling, since files are rotated, trimmed and edited.
	h.Key = lines.ID(fmt.Appendf(nil, "%s %s %d %d", h.Kind, h.EntryID, l.StartOffset, at.UnixNano()))[:32]
	return h
}

// Done records that the consumer took the item of [Consuming.Next]. If saving that fails, it counts all the same, and a
// later [Consuming.Save] writes it.
func (c *Consuming) Done() error {
	kind := c.first()
	now := now(c.box)
	*c.state.place(kind) = c.heads[kind].place
	c.state.Had++
	c.state.LastAt, c.state.Failing = &now, nil
	delete(c.heads, kind)
	return c.Save()
}

// Failed records that the consumer did not take the item. patience is how long that may last before a person must be
// told.
func (c *Consuming) Failed(why error, patience time.Duration) error {
	key, text := c.heads[c.first()].Key, strings.ToValidUTF8(why.Error(), "\uFFFD")
	if f := c.state.Failing; f == nil || f.Key != key {
		c.state.Failing = &ConsumerFailure{Key: key, Since: now(c.box)}
	}
	f := c.state.Failing
	f.Tries, f.Patience, f.Error = f.Tries+1, patience, strings.ToValidUTF8(text[:min(len(text), maxConsumerError)], "")
	return c.Save()
}
