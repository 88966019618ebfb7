package worlds_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// step is one action in a world. kill is the number of the disk's change at which it is
// killed, 0 for none; torn makes that write in part. Before change number half a
// producer writes the first part of a line, and before number rest the rest of it. If
// rest is 0, a later step writes it.
type step struct {
	kind       string
	pick       int
	kill       int
	torn       bool
	half, rest int
}

// world is an inbox and its model while steps are taken.
type world struct {
	box     *inbox.Inbox
	m       model
	names   int
	rotated []string // answered, and their results taken away
	boots   int
	// canceled says that something was: what an edit moves after that is passed
	// over in its new place, but a view shows it as waiting until then.
	canceled bool
	now      time.Time
	// half is an entry whose first part a producer has written.
	half    string
	written int
}

func (w *world) name() string { w.names++; return fmt.Sprintf("entry-%04d", w.names) }

// tx runs f in a transaction, and commits it.
func (w *world) tx(f func(tx *inbox.Tx) error) error {
	tx, err := w.box.Begin(context.Background())
	if err != nil {
		return err
	}
	err = f(tx)
	if err == nil {
		err = tx.Commit()
	}
	return errors.Join(err, tx.Close())
}

func (w *world) waiting() (all []inbox.Waiting, err error) {
	v, err := w.box.View()
	if err != nil {
		return nil, err
	}
	err = v.Waits(nil, func(e inbox.Waiting) bool {
		if !e.Torn {
			all = append(all, e)
		}
		return true
	})
	return all, errors.Join(err, v.Close())
}

// found is what the inbox shows.
func (w *world) found() (m model, err error) {
	if err := w.tx(func(*inbox.Tx) error { return nil }); err != nil { // what a kill left is done
		return m, err
	}
	waiting, err := w.waiting()
	if err != nil {
		return m, err
	}
	for _, e := range waiting {
		m.Queued = append(m.Queued, e.Text)
	}
	scheduled, err := w.box.Scheduled()
	if err != nil {
		return m, err
	}
	for _, e := range scheduled {
		m.Scheduled = append(m.Scheduled, timed{Text: e.Text})
	}
	v, err := w.box.View()
	if err != nil {
		return m, err
	}
	if d := v.InFlight(); d != nil {
		m.InFlight = d.Text()
	}
	if err := v.Close(); err != nil {
		return m, err
	}
	if m.Answered, err = names(w.box.ResultsPath()); err != nil {
		return m, err
	}
	letters, _, err := script.Letters(w.box)
	for _, l := range letters {
		if l.RequeuedAt == nil {
			m.Dead = append(m.Dead, l.Text())
		}
	}
	return m, err
}

// names are the entries that a log tells of, in its order.
func names(path string) (all []string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for l := range strings.Lines(string(b)) {
		if i := strings.Index(l, "entry-"); i >= 0 {
			all = append(all, l[i:i+len("entry-0000")])
		}
	}
	return all, err
}

// take takes one step, and says what is other than the model has it.
func (w *world) take(t testing.TB, s step) error {
	if s.kind == "reboot" {
		if len(w.rotated) > 0 {
			return nil // results that were rotated away may come back then
		}
		w.boots++
		machine.TestOnlyBootID = fmt.Sprint("boot ", w.boots)
		return w.compare(w.m)
	}
	if w.half != "" && needsWhole(s.kind) {
		if err := errors.Join(w.writeRest(), w.compare(w.m)); err != nil {
			return err
		}
	}
	if do, ok := others[s.kind]; ok {
		if err := do(w, s); err != nil {
			return err
		}
		return w.compare(w.m)
	}
	return w.takeOurs(t, s)
}

// takeOurs takes a step of ours, which may be killed, and beside which a producer
// may write.
func (w *world) takeOurs(t testing.TB, s step) error {
	if s.kind == "an hour goes by" {
		w.now = w.now.Add(time.Hour)
	}
	before, next := w.m.clone(), w.m.clone()
	if w.half == "" {
		before.promote(w.now)
		next.promote(w.now)
	}
	p := &producer{w: w, s: s}
	stop := crash.Observe(t, crash.Chain(p.observe, kill(s)))
	err := kinds[s.kind](w, s, &next)
	stop()
	switch {
	case p.err != nil:
		return p.err
	case s.kill == 0 && err != nil && !errors.Is(err, inbox.ErrTorn):
		return err
	case s.kill == 0 && err == nil:
		return w.compare(p.beside(next)...)
	}
	return w.compare(append(p.beside(next), p.beside(before)...)...)
}

// compare holds what there is against what there may be.
func (w *world) compare(may ...model) error {
	got, err := w.found()
	if err != nil {
		return err
	}
	for _, m := range may {
		if w.half == "" { // or else promoting waits for the rest of that line
			m.promote(w.now)
		}
		if got.String() == m.String() {
			w.m = m
			return nil
		}
	}
	return fmt.Errorf("there is %v,\nwhere there should be %v", got, may)
}

// run takes the steps in a new world, and returns the first that went wrong.
func run(t testing.TB, steps []step) (int, error) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := &world{now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), m: model{Expires: map[string]time.Time{}, Early: map[string]time.Time{}}}
	w.box, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{LockWait: time.Minute, Now: func() time.Time { return w.now }})
	if err != nil {
		return 0, err
	}
	machine.TestOnlyBootID = "boot 0"
	for i, s := range steps {
		w.now = w.now.Add(time.Nanosecond) // no two letters of an entry have one time
		if err := w.take(t, s); err != nil {
			return i, fmt.Errorf("step %d, %v: %w", i, s, err)
		}
	}
	return len(steps), nil
}

// draw makes the steps of a world.
func draw(seed uint64, n int) (steps []step) {
	r := rand.New(rand.NewPCG(seed, 10))
	all := []string{"send", "send", "echo", "turn", "turn", "deliver", "deliver", "reboot"}
	for kind := range kinds {
		all = append(all, kind)
	}
	for kind := range others {
		all = append(all, kind)
	}
	slices.Sort(all)
	for range n {
		s := step{kind: all[r.IntN(len(all))], pick: r.IntN(1000)}
		if _, ours := kinds[s.kind]; ours && r.IntN(5) == 0 && s.kind != "batch" {
			s.kill, s.torn = 1+r.IntN(8), r.IntN(2) == 0
		}
		// A kill between our append and the moving of a part that came before it may
		// leave that part cut, which the model does not know.
		if r.IntN(4) == 0 && (s.kill == 0 || !adds(s.kind)) {
			s.half = 1 + r.IntN(8)
			s.rest = r.IntN(2) * (s.half + r.IntN(3))
		}
		steps = append(steps, s)
	}
	return steps
}

// shrink drops the steps that a failure does not need.
func shrink(t testing.TB, steps []step) []step {
	for again := true; again; {
		again = false
		for i := len(steps) - 1; i >= 0; i-- {
			fewer := slices.Delete(slices.Clone(steps), i, i+1)
			if at, err := run(t, fewer); err != nil {
				steps, again = fewer[:at+1], true
				i = min(i, len(steps))
			}
		}
	}
	return steps
}

// TestWorlds takes random steps in random worlds. A failure names its seed and the few
// steps that reproduce it.
func TestWorlds(t *testing.T) {
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
	for seed := range uint64(long.Rounds(10, 200)) {
		all := draw(seed, long.Rounds(60, 90))
		if at, err := run(t, all); err != nil {
			few := shrink(t, all[:at+1])
			_, again := run(t, few)
			t.Fatalf("seed %d: %v\nthese steps do: %+v\n%v", seed, err, few, again)
		}
	}
}
