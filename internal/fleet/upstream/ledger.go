package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

const (
	// FileName is the ledger, and LockName its lock. Both lie beside the inbox.
	FileName = ".nats-agent.json"
	LockName = ".nats-lock"

	version = 1
	// maxFile limits the ledger, in bytes: one claim with the longest payload, or [Max] claims with short ones.
	maxFile = 128 << 20
	// Max is how many messages one agent may hold.
	Max = 1000
	// lockPatience covers the moment in which another agent ends.
	lockPatience = 50 * time.Millisecond
)

// Binding says which agent works on the inbox, and for which subject of which stream.
type Binding struct {
	Agent   string `json:"agent"`
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
}

// Claim is a message that the agent holds, with the data of its latest copy.
type Claim struct {
	message.Message
	// Agent is the agent's name, unique in its stream.
	Agent string `json:"-"`
	// Appended is the copy from which the entry was made.
	Appended uint64 `json:"appended"`
	// Lease is the revision of the message's [Lease]. It is 0 if the agent does not hold the lease, as in the ledger
	// of a release without leases. Attempt counts from 1.
	Lease   uint64    `json:"lease,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	// Taken is when this life of the agent asked for the message. It is zero for a message of an earlier life.
	Taken time.Time `json:"-"`
	// Refused is why the message cannot be an entry, or no longer. The claim has none, and Detail goes into the letter.
	Refused string `json:"refused,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Payload is for the message's dead letter, where the entry cannot supply it.
	Payload []byte `json:"payload,omitempty"`
	// Hash is the entry's entry_id if the inbox already had the entry, so that it is not from the copy Appended.
	Hash string `json:"entry_id,omitempty"`
	// GivingBack is until when the message should wait on the server. Its entry was or is being taken back.
	GivingBack *time.Time `json:"giving_back,omitempty"`
	// Used says that a session used up the attempt before the message was given back.
	Used bool `json:"used,omitempty"`
}

func (c Claim) key() string { return message.Key(c.ID) }

func (c Claim) entry() string {
	if c.Refused != "" {
		return ""
	}
	return c.Entry
}

func (c Claim) name() string {
	place := message.Place(c.Stream, c.Seq)
	switch {
	case c.ID == "":
		return place
	case c.Seq == 0 || message.IsAt(c.Stream, place, c.ID):
		return c.ID
	}
	return fmt.Sprintf("%s (%s)", words.Brief(c.ID), place)
}

// Ledger is an open ledger. Several goroutines may use it.
type Ledger struct {
	path string
	lock *disk.Lock

	mu     sync.Mutex
	state  state
	behind bool // the file still has forgotten claims
}

// state is the content of the file.
type state struct {
	Version int `json:"v"`
	Binding
	// Inbox is the base name of the queue file. Lock identifies the lock file: a ledger that was copied with its
	// directory names the old one.
	Inbox  string  `json:"inbox"`
	Lock   string  `json:"lock"`
	Claims []Claim `json:"claims"`
	// Launcher is the last launcher that the agent started. It outlives a killed agent.
	Launcher *inbox.Process `json:"launcher,omitempty"`
}

// ErrBusy says that another agent works on the inbox.
var ErrBusy = errors.New("another agent works on this inbox")

// OpenLedger takes the lock of an inbox and reads its ledger. The error matches [ErrBusy] if another agent has the
// lock. It says what to do if the ledger is another agent's, was copied here, or cannot be read.
func OpenLedger(inbox string, b Binding) (_ *Ledger, err error) {
	dir := filepath.Dir(inbox)
	l := &Ledger{path: filepath.Join(dir, FileName)}
	lockPath := filepath.Join(dir, LockName)
	l.lock, err = disk.AcquireLock(context.Background(), lockPath, lockPatience)
	switch {
	case errors.Is(err, disk.ErrLocked):
		by := "a process that cannot be told"
		if pid := machine.LockHolder(lockPath); pid > 0 {
			by = "process " + strconv.Itoa(pid)
		}
		return nil, fmt.Errorf("%w (%s): give each agent an inbox of its own", ErrBusy, by)
	case err != nil:
		return nil, fmt.Errorf("lock the inbox %s: %w", inbox, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.lock.Release())
		}
	}()
	if err := l.lock.Sign(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return nil, fmt.Errorf("lock the inbox %s: %w", inbox, err)
	}
	mine := state{Version: version, Binding: b, Inbox: filepath.Base(inbox), Lock: l.lock.Identity()}
	raw, err := disk.ReadState(l.path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no agent has worked on this inbox
		l.state = mine
		return l, l.write(mine)
	case err != nil:
		return nil, fmt.Errorf("read which messages the agent holds: %w", err)
	}
	if err := json.Unmarshal(raw, &l.state); err != nil {
		return nil, fmt.Errorf("read which messages the agent holds: %s: %w: %s", l.path, err, remove)
	}
	if err := l.state.check(mine); err != nil {
		return nil, fmt.Errorf("%s %w", l.path, err)
	}
	for i := range l.state.Claims {
		l.state.Claims[i].Agent = b.Agent
	}
	return l, nil
}

const remove = "remove it once no message of its agent is open; messages that it held come again after the consumer's AckWait"

func (s *state) check(mine state) error {
	switch {
	case s.Version != version:
		return fmt.Errorf("has version %d, and this heartbeat-nats reads %d: use the release that wrote it, or %s", s.Version, version, remove)
	case s.Lock != mine.Lock:
		return fmt.Errorf("was not written here, and came with a copy: %s", remove)
	case s.Inbox != mine.Inbox:
		return fmt.Errorf("is about the inbox %q, and this is %q: one directory holds one inbox", s.Inbox, mine.Inbox)
	case s.Binding != mine.Binding:
		if len(s.Claims) == 0 {
			s.Binding = mine.Binding // nothing is owed
			return nil
		}
		return fmt.Errorf("holds messages of agent %q for stream %s, subject %s, and this is agent %q for stream %s, subject %s: "+
			"start that one again until it holds none (--drain-on TERM), or give this one an inbox of its own",
			s.Agent, s.Stream, s.Subject, mine.Agent, mine.Stream, mine.Subject)
	case len(s.Claims) > Max:
		return fmt.Errorf("holds %d messages, and %d are the most: %s", len(s.Claims), Max, remove)
	}
	seen := map[string]bool{}
	for _, c := range s.Claims {
		if c.ID == "" || c.Entry == "" || c.Ack == "" || c.Stream != mine.Stream || seen[c.Entry] {
			return fmt.Errorf("has a message without an id, an entry or an address, one of another stream, or one twice: %s", remove)
		}
		seen[c.Entry] = true
	}
	return nil
}

// Identity tells this ledger from every other on this machine.
func (l *Ledger) Identity() string { return l.lock.Identity() }

// IsHere reports whether the inbox is on this machine, and the ledger with this identity lies beside it.
func IsHere(inbox, identity string) bool {
	lock, err := disk.OpenRead(filepath.Join(filepath.Dir(inbox), LockName))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }() // only read
	return identity != "" && lock.Identity() == identity
}

// now returns the state. Its claims are never changed in place.
func (l *Ledger) now() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// All returns the claims, the oldest first.
func (l *Ledger) All() []Claim { return slices.Clone(l.now().Claims) }

// Get returns the claim of an entry.
func (l *Ledger) Get(entry string) (Claim, bool) {
	s := l.now()
	if i := s.index(entry); i >= 0 {
		return s.Claims[i], true
	}
	return Claim{}, false
}

// Len returns how many messages the agent holds.
func (l *Ledger) Len() int { return len(l.now().Claims) }

// Put adds or replaces the claim of an entry. After nil it survives a power loss; after an error nothing changed.
func (l *Ledger) Put(c Claim) error {
	return l.change("note that the agent holds "+strconv.Quote(c.ID), func(s *state) {
		if i := s.index(c.Entry); i >= 0 {
			s.Claims[i] = c
		} else {
			s.Claims = append(s.Claims, c)
		}
	})
}

// Update changes a claim, if there is one, durably as [Ledger.Put] does.
func (l *Ledger) Update(entry string, f func(*Claim)) error {
	return l.change("note what the agent knows of "+strconv.Quote(entry), func(s *state) {
		if i := s.index(entry); i >= 0 {
			f(&s.Claims[i])
		}
	})
}

// Forget removes a claim once nothing is owed. The file follows with the next change or with [Ledger.Flush]: whoever
// finds the claim there after a kill tells the stream again, which changes nothing, and a write takes longest.
func (l *Ledger) Forget(entry string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.state.index(entry); i >= 0 {
		l.state.Claims, l.behind = slices.Concat(l.state.Claims[:i], l.state.Claims[i+1:]), true
	}
}

// Flush removes forgotten claims from the file.
func (l *Ledger) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.behind {
		return nil
	}
	if err := l.write(l.state); err != nil {
		return fmt.Errorf("note that what is settled is no longer held: %w", err)
	}
	return nil
}

// Launcher returns the last noted launcher, or nil.
func (l *Ledger) Launcher() *inbox.Process { return l.now().Launcher }

// Launched notes a launcher, durably as [Ledger.Put] does.
func (l *Ledger) Launched(by inbox.Process) error {
	return l.change("note which launcher the agent started", func(s *state) { s.Launcher = &by })
}

// change applies f to the state and writes it, unless f changes nothing.
func (l *Ledger) change(what string, f func(*state)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.state
	next.Claims = slices.Clone(next.Claims)
	if f(&next); reflect.DeepEqual(next, l.state) {
		return nil
	}
	if err := l.write(next); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l.state = next
	return nil
}

func (l *Ledger) write(s state) error {
	if len(s.Claims) > Max {
		return fmt.Errorf("it holds %d messages already, which is the most", Max)
	}
	if err := l.lock.Check(); err != nil {
		return err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(raw) >= maxFile {
		return fmt.Errorf("what it holds would take %s in %s, and %s are the most", words.Size(int64(len(raw))), l.path, words.Size(maxFile))
	}
	if err := disk.Publish(l.path, append(raw, '\n'), true); err != nil {
		return err
	}
	l.behind = false
	return nil
}

// Close lets another agent work on the inbox. That agent tells the stream again of claims that remain in the file.
func (l *Ledger) Close() error { return errors.Join(l.Flush(), l.lock.Release()) }

func (s *state) index(entry string) int {
	return slices.IndexFunc(s.Claims, func(c Claim) bool { return c.Entry == entry })
}
