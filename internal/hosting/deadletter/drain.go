package deadletter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/guild"
)

// ErrDraining says that another process drains these letters.
var ErrDraining = errors.New("another process drains these dead letters: its result counts, so try again later")

// Options say which letters are drained, and where to.
type Options struct {
	DB   string   // the database that the letters are beside
	Cwds []string // working directories whose letters of the babysitter are drained too

	// GuildURL is the address of a session's guild, or "" if it is not known. It has to
	// come from the session's folder or a person: what a letter says about it is not read.
	GuildURL func(session string) string
	// Hosted reports whether heartbeat-host hosts or hosted the session. Then its
	// letters are beside the database, and one below a working directory is forged.
	Hosted func(session string) bool
	// Busy reports whether the session's host lives, which reports for itself.
	Busy func(session string) bool
	// Refused has letters sent again that the guild refused before.
	Refused bool

	// Clock is for tests; nil is the machine's.
	Clock guild.Clock
}

// What became of a letter.
const (
	Sent    = "sent"    // the guild has it, and the file is gone
	Refused = "refused" // the guild refuses it: it stays and is marked
	Left    = "left"    // it stays, for the next drain
	Bad     = "bad"     // it is no letter that can be sent: it stays
)

// Outcome is what became of one letter.
type Outcome struct {
	Letter
	What string `json:"what"`
	Why  string `json:"why,omitempty"` // empty if it was sent
	// As is the status that a record was taken with; "failed" for a cancelled session
	// if the guild takes no "cancelled".
	As string `json:"as,omitempty"`
}

// Drain sends the letters, running reports before records. It does not stop at a letter
// that cannot be sent. Once a guild cannot be reached, its other letters are left; once
// it fails at a letter, its other letters are tried once each. Kills lose nothing: a
// letter goes once its guild has it.
//
// The error is [ErrDraining], the context's, or says which folder could not be read;
// what was done until then is returned with it.
func Drain(ctx context.Context, o Options) ([]Outcome, error) {
	box := Beside(o.DB)
	letters, err := box.every(o.Cwds)
	if len(letters) == 0 {
		box.sweep()
		return nil, err
	}
	if dirErr := box.makeDir(box.dir); dirErr != nil {
		return nil, errors.Join(err, dirErr)
	}
	lock, lockErr := disk.AcquireLock(ctx, filepath.Join(box.dir, ".drain-lock"), time.Millisecond)
	if errors.Is(lockErr, disk.ErrLocked) {
		return nil, ErrDraining
	}
	if lockErr != nil {
		return nil, errors.Join(err, lockErr)
	}
	defer lock.Release() // the kernel would release it as well
	d := drain{Options: o, box: box, down: map[string]error{}, tired: map[string]bool{}}
	for _, l := range letters {
		if stopped := context.Cause(ctx); stopped != nil {
			return d.outcomes, errors.Join(err, stopped)
		}
		d.one(ctx, l)
	}
	box.sweep()
	return d.outcomes, err
}

// every is all letters, in the order in which they are sent.
func (b Box) every(cwds []string) ([]Letter, error) {
	letters, _, err := b.List()
	seen := map[string]bool{b.dir: true}
	for _, cwd := range cwds {
		dir := filepath.Join(cwd, ".nexus", "dlq")
		if seen[dir] {
			continue // the guild's home: its letters are those beside the database
		}
		seen[dir] = true
		found, _, belowErr := b.ListBelow(cwd)
		letters, err = append(letters, found...), errors.Join(err, belowErr)
	}
	order(letters)
	return letters, err
}

// drain is one pass over the letters.
type drain struct {
	Options
	box      Box
	down     map[string]error // guilds that cannot be reached
	tired    map[string]bool  // guilds that failed at a letter
	outcomes []Outcome
}

func (d *drain) one(ctx context.Context, l Letter) {
	outcome := Outcome{Letter: l}
	outcome.What, outcome.Why = d.judge(&l)
	if outcome.What == Refused && d.obsolete(l) && d.box.Remove(Running, l.SessionID) == nil {
		return
	}
	if outcome.What == "" {
		outcome.What, outcome.Why, outcome.As = d.send(ctx, &l)
		outcome.Letter = l
	}
	if outcome.What != "" {
		d.outcomes = append(d.outcomes, outcome)
	}
}

// judge says why a letter is not sent, or nothing if it is.
func (d *drain) judge(l *Letter) (what, why string) {
	switch {
	case l.Problem != "":
		return Bad, l.Problem
	case l.foreign() && d.Hosted != nil && d.Hosted(l.SessionID):
		return Bad, "heartbeat-host hosts this session and keeps its letters beside the database, so this one is not its own"
	case d.Busy != nil && d.Busy(l.SessionID):
		return Left, "the session's host runs and reports for itself"
	case l.Refused != nil && !d.Refused:
		return Refused, fmt.Sprintf("the guild refused it at %s: HTTP %d: %s", l.Refused.At.Format(time.RFC3339), l.Refused.Status, l.Refused.Body)
	}
	return "", ""
}

// obsolete reports whether a refused letter says that a session runs whose record was
// taken meanwhile, by the guild of the babysitter. Nobody else looks for such a letter.
func (d *drain) obsolete(l Letter) bool {
	if l.Kind != Running || l.foreign() {
		return false
	}
	waits, err := disk.Exists(d.box.Path(Record, l.SessionID))
	return err == nil && !waits
}

func (d *drain) send(ctx context.Context, l *Letter) (what, why, as string) {
	url := ""
	if d.GuildURL != nil {
		url = d.GuildURL(l.SessionID)
	}
	if url == "" {
		return Left, "the address of the session's guild is not known", ""
	}
	if err := d.down[url]; err != nil {
		return Left, err.Error(), ""
	}
	client, err := guild.New(guild.Options{URL: url, SessionID: l.SessionID, Once: d.tired[url], Clock: d.Clock})
	if err != nil {
		return Left, err.Error(), ""
	}
	answer, err := d.box.deliver(ctx, client, l)
	if err == nil {
		if l.Kind == Record {
			_ = d.box.Remove(Running, l.SessionID) // refused before, and of no use now
		}
		return Sent, "", answer.As
	}
	var refused *guild.Refused
	var away *guild.Unreachable
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", "" // the guild of the babysitter took it meanwhile
	case errors.As(err, &away) && errors.As(err, &refused):
		d.tired[url] = true
	case errors.As(err, &away):
		d.down[url] = err
	case errors.As(err, &refused):
		return Refused, err.Error(), ""
	default:
		return Bad, err.Error(), ""
	}
	return Left, err.Error(), ""
}
