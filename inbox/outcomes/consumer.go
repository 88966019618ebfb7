package outcomes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Consumer is a named process that is handed each result and each dead letter. Its progress is the content of
// a file beside the inbox.
type Consumer struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	// Had is how many items the consumer was handed, the last of them at LastAt.
	Had         int64      `json:"had"`
	LastAt      *time.Time `json:"last_at,omitempty"`
	Results     Place      `json:"results"`
	DeadLetters Place      `json:"dead_letters"`
	// Failing describes the refusal of the next item, nil if there is none.
	Failing *ConsumerFailure `json:"failing,omitempty"`
	// Err is why the file cannot be read. Only Name is set then.
	Err error `json:"-"`
}

// ConsumerFailure describes an item that a consumer does not take.
type ConsumerFailure struct {
	Key   string    `json:"key"` // of the item
	Since time.Time `json:"since"`
	Tries int       `json:"tries"`
	Error string    `json:"error"`
	// Patience is how long the failure may last before a person must be told.
	Patience time.Duration `json:"patience_ns"`
}

// Long reports whether the failure has outlasted its patience.
func (f *ConsumerFailure) Long(now time.Time) bool {
	return f != nil && now.Sub(f.Since).Abs() >= f.Patience // also if the clock was set back
}

const (
	consumerPrefix, consumerLock = ".consumer-", ".lock"
	// maxConsumerFile bounds what is read of a consumer's file, maxConsumerError the error text that is kept.
	maxConsumerFile, maxConsumerError = 64 << 10, 1 << 10
	maxConsumerName                   = 40
	// maxConsumers bounds the number of consumers, since each may keep results from being trimmed.
	maxConsumers = 32
	// maxBeside bounds the number of files beside an inbox whose names are read.
	maxBeside = 100_000
)

// ErrConsumerGone means that the lock file was removed, so that another process may be handing over results under the
// same name.
var ErrConsumerGone = disk.ErrLockGone

// CheckConsumer returns an error for a name that is not valid.
func CheckConsumer(name string) error {
	foreign := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	}
	if name == "" || len(name) > maxConsumerName || strings.ContainsAny(name[:1], "-_") || strings.ContainsFunc(name, foreign) {
		return fmt.Errorf("%q is not a valid name for a consumer: give it up to %d letters, digits, - and _, the first of them a letter or a digit", name, maxConsumerName)
	}
	return nil
}

func consumerFile(b *inbox.Inbox, name string) string {
	return filepath.Join(b.Dir(), consumerPrefix+name)
}

// Consumers returns the consumers of the inbox, sorted by name. If a file cannot be read, its consumer has Err.
func Consumers(b *inbox.Inbox) (all []Consumer, err error) {
	names, more, err := disk.Names(b.Dir(), maxBeside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && more {
		err = fmt.Errorf("more than %d files are in %s: move away what does not belong to the inbox", maxBeside, b.Dir())
	}
	if err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	slices.Sort(names)
	for _, n := range names {
		if name, is := strings.CutPrefix(n, consumerPrefix); is && CheckConsumer(name) == nil {
			c, err := readConsumer(b, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // just forgotten
			}
			c.Name, c.Err = name, err
			all = append(all, c)
		}
	}
	return all, nil
}

func readConsumer(b *inbox.Inbox, name string) (c Consumer, err error) {
	data, err := disk.ReadState(consumerFile(b, name), maxConsumerFile)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil || c.Name != name || c.Results.Off < 0 || c.DeadLetters.Off < 0 {
		return Consumer{}, fmt.Errorf("%s does not say how far the consumer has come (%w): heartbeat results --forget %s, and it begins anew",
			consumerFile(b, name), cmp.Or(err, errors.New("it is not a consumer's file")), name)
	}
	return c, nil
}

// ForgetConsumer removes a consumer, which must not be running.
func ForgetConsumer(ctx context.Context, b *inbox.Inbox, name string) error {
	if err := CheckConsumer(name); err != nil {
		return err
	}
	path := consumerFile(b, name)
	if there, err := disk.Exists(path); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("the inbox has no consumer %q: heartbeat status lists them", name)
	}
	lock, err := lockConsumer(ctx, b, name, time.Nanosecond)
	if err != nil {
		return err
	}
	err = errors.Join(disk.Remove(path), disk.Remove(path+".tmp"), disk.Remove(path+consumerLock))
	return errors.Join(err, lock.Release())
}

func lockConsumer(ctx context.Context, b *inbox.Inbox, name string, wait time.Duration) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, consumerFile(b, name)+consumerLock, wait)
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("another process hands over results as %q: end that one, or choose another name: %w", name, err)
	}
	return lock, err
}

// Behind returns how many results and dead letters the consumer has yet to be handed.
func Behind(b *inbox.Inbox, c Consumer) (n int, err error) {
	if c.Err != nil {
		return 0, c.Err
	}
	for _, kind := range handedKinds {
		_, _, err = EachBehind(*c.place(kind), fileOf(b, kind), whenOf[kind], func([]byte, time.Time) bool { n++; return true })
		if err != nil {
			return n, fmt.Errorf("count what the consumer %s has not been handed: %w", c.Name, err)
		}
	}
	return n, nil
}

// handedKinds are the files that consumers are handed, in the order in which a commit writes them.
var handedKinds = []journal.Kind{journal.Results, journal.DeadLetters}

func (c *Consumer) place(k journal.Kind) *Place {
	if k == journal.Results {
		return &c.Results
	}
	return &c.DeadLetters
}

var whenOf = map[journal.Kind]When{
	journal.Results: func(l []byte) (time.Time, bool) {
		if !json.Valid(l) || flat.Value(l).Get("entry_id").Text() == "" {
			return time.Time{}, false
		}
		return acknowledged(l), true // a result without a time comes next
	},
	journal.DeadLetters: func(l []byte) (time.Time, bool) {
		d := glance(l)
		return d.at, d.ok && !d.mark
	},
}
