package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// Handover is a result or a dead letter, as a consumer is handed it.
type Handover struct {
	V    int    `json:"v"`
	Kind string `json:"kind"` // HandedResult or HandedLetter
	// Key is the same whenever this one is handed over, and of no other one.
	Key      string                     `json:"key"`
	Consumer string                     `json:"consumer"`
	Inbox    string                     `json:"inbox"`
	ID       string                     `json:"id,omitempty"` // the envelope's own
	EntryID  string                     `json:"entry_id"`
	At       time.Time                  `json:"at"` // when it was committed
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Line is that of the file, as it stands there.
	Line json.RawMessage `json:"line"`
}

// The kinds of [Handover].
const (
	HandedResult = "result"
	HandedLetter = "dead_letter"
)

// Consuming is a consumer at work: no other process is, under that name.
type Consuming struct {
	box   *Inbox
	state Consumer
	lock  *disk.Lock
	heads map[journal.Kind]*head
	notes []string
	// Left is the mark of the one before, if that was killed: what it started may still run.
	Left   string
	marked bool
}

// head is the next one of a file, and the place behind it.
type head struct {
	Handover
	place journal.Place
}

// Consume takes up the work of a consumer. One that is not known yet begins with the first
// result and the first dead letter that are kept, or with fresh with those to come. Another
// process of that name is waited for, 0 for as long as ctx allows.
func (b *Inbox) Consume(ctx context.Context, name string, fresh bool, wait time.Duration) (_ *Consuming, err error) {
	if err := CheckConsumer(name); err != nil {
		return nil, err
	}
	if _, err := b.makeGood(ctx); err != nil { // what a killed process committed is in the files then
		return nil, err
	}
	c := &Consuming{box: b, heads: map[journal.Kind]*head{}}
	if c.lock, err = b.lockConsumer(ctx, name, wait); err != nil {
		return nil, err
	}
	left, err := c.lock.File().ReadUpTo(maxMark)
	if c.Left = string(left); err == nil {
		c.state, err = b.readConsumer(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = c.begin(ctx, name, fresh)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// begin makes it known to the inbox, under the lock, so that nothing is trimmed meanwhile.
func (c *Consuming) begin(ctx context.Context, name string, fresh bool) (err error) {
	t, err := c.box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if all, err := c.box.Consumers(); err != nil {
		return err
	} else if len(all) >= maxConsumers {
		return fmt.Errorf("the inbox has %d consumers, and may have no more: heartbeat results --forget NAME forgets one that is gone for good", len(all))
	}
	c.state = Consumer{Name: name, Since: c.box.utcNow()}
	for _, kind := range handedKinds {
		p, err := journal.PlaceIn(c.box.fileOf(kind), fresh, c.state.Since, whenOf[kind])
		if err != nil {
			return err
		}
		*c.state.place(kind) = p
	}
	return c.Save()
}

// maxMark bounds what is read of a mark.
const maxMark = 4 << 10

// Mark leaves a mark of what is started for whoever comes after a kill.
func (c *Consuming) Mark(mark string) error {
	c.marked = true
	return c.lock.Sign(mark)
}

// Close ends the work.
func (c *Consuming) Close() (err error) {
	if c.marked {
		err = c.lock.Sign("")
	}
	return errors.Join(err, c.lock.Release())
}

// State is how far it has come.
func (c *Consuming) State() Consumer { return c.state }

// Save writes down how far it has come.
func (c *Consuming) Save() error {
	data, err := json.Marshal(c.state)
	if err == nil {
		err = c.lock.Check()
	}
	if err == nil {
		err = disk.Publish(c.box.consumerFile(c.state.Name), data, true)
	}
	if err != nil {
		return fmt.Errorf("note what the consumer %s was handed: %w", c.state.Name, err)
	}
	return nil
}

// Notes are sentences about what could not be handed over, each once.
func (c *Consuming) Notes() []string {
	notes := c.notes
	c.notes = nil
	return notes
}

// Next is the one to hand over now, nil where there is none. It is the same until [Consuming.Done].
func (c *Consuming) Next() (*Handover, error) {
	if err := c.lock.Check(); err != nil {
		return nil, err
	}
	results, letters := journal.Results, journal.DeadLetters
	// A commit's lines are in all files before the next commit. So what is committed before a
	// line of one file is found in the other by whoever looks there later.
	for _, kind := range []journal.Kind{results, letters, results} {
		if err := c.look(kind); err != nil {
			return nil, err
		}
	}
	if h := c.heads[c.first()]; h != nil {
		return &h.Handover, nil
	}
	return nil, nil
}

// first is the file whose head was committed first. One commit adds results before dead letters.
func (c *Consuming) first() journal.Kind {
	r, l := c.heads[journal.Results], c.heads[journal.DeadLetters]
	if r == nil || l != nil && l.At.Before(r.At) {
		return journal.DeadLetters
	}
	return journal.Results
}

// look finds the next one of a file, if it is not known.
func (c *Consuming) look(kind journal.Kind) error {
	if c.heads[kind] != nil {
		return nil
	}
	var found *head
	place := c.state.place(kind)
	next, missed, err := place.Each(c.box.fileOf(kind), whenOf[kind], func(l []byte, at time.Time) bool {
		found = &head{Handover: c.handover(kind, bytes.Clone(l), at)}
		return false
	})
	if err != nil {
		return fmt.Errorf("read what to hand over: %w", err)
	}
	if missed {
		c.notes = append(c.notes, fmt.Sprintf("the line of %s that the consumer %s had last is in no file beside the inbox any more: if that was rotated or restored meanwhile, results may not have been handed over",
			c.box.fileOf(kind), c.state.Name))
	}
	if found == nil {
		*place = next // behind lines that nobody is handed
		return nil
	}
	found.place = next
	c.heads[kind] = found
	return nil
}

func (c *Consuming) handover(kind journal.Kind, line []byte, at time.Time) Handover {
	h := Handover{V: 1, Kind: HandedResult, Consumer: c.state.Name, Inbox: c.box.path, At: at, Line: line}
	var start int64
	if kind == journal.Results {
		var r Result
		if json.Unmarshal(line, &r) != nil { // a member is not what it should be
			r = Result{}
			_ = json.Unmarshal(line, &struct {
				EntryID *string `json:"entry_id"`
			}{&r.EntryID}) // whoever found the line has seen it
		}
		h.ID, h.EntryID, h.Metadata, start = r.ID, r.EntryID, r.Metadata, r.StartOffset
	} else {
		l, _, _ := ParseLetter(line) // it was parsed before
		h.Kind, h.ID, h.EntryID, h.Metadata, start = HandedLetter, l.ID, l.EntryID, l.Metadata, l.StartOffset
	}
	// Neither where the line stands nor how it is spelt: files are rotated, trimmed and edited.
	parts := []string{h.Kind, h.EntryID, strconv.FormatInt(start, 10), strconv.FormatInt(at.UnixNano(), 10)}
	h.Key = entryID([]byte(strings.Join(parts, " ")))[:32]
	return h
}

// Done says that the one of [Consuming.Next] was taken. Where that cannot be written down it
// counts all the same, and [Consuming.Save] writes it once that is possible.
func (c *Consuming) Done() error {
	kind := c.first()
	now := c.box.utcNow()
	*c.state.place(kind) = c.heads[kind].place
	c.state.Had++
	c.state.LastAt, c.state.Failing = &now, nil
	delete(c.heads, kind)
	return c.Save()
}

// Failed says that it was not taken, and how long that may last until a person has to know.
func (c *Consuming) Failed(why error, patience time.Duration) error {
	key, text := c.heads[c.first()].Key, strings.ToValidUTF8(why.Error(), "\uFFFD")
	if f := c.state.Failing; f == nil || f.Key != key {
		c.state.Failing = &ConsumerFailure{Key: key, Since: c.box.utcNow()}
	}
	f := c.state.Failing
	f.Tries, f.Patience, f.Error = f.Tries+1, patience, strings.ToValidUTF8(text[:min(len(text), maxConsumerError)], "")
	return c.Save()
}
