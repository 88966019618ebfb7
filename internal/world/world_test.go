package world_test

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

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/disktest"
	"heartbeat/internal/host"
)

// model is where each entry of a world is. Every entry is in one place.
type model struct {
	Queued   []string // in their order, what was given back first
	InFlight string
	Answered []string
	Dead     []string // canceled ones too
}

func (m model) clone() model {
	m.Queued, m.Answered, m.Dead = slices.Clone(m.Queued), slices.Clone(m.Answered), slices.Clone(m.Dead)
	return m
}

func (m model) String() string {
	return fmt.Sprintf("queued %v, in flight %q, answered %v, dead %v", m.Queued, m.InFlight, m.Answered, m.Dead)
}

// step is one thing that somebody does. kill is at which change of the disk it is
// killed, 0 for none.
type step struct {
	kind string
	pick int
	kill int
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

// settle is a way for the entry in flight to end; back says that it waits again.
func (w *world) settle(next *model, how func(tx *inbox.Tx) error, to *[]string) error {
	if w.m.InFlight == "" {
		return nil
	}
	if to != nil {
		*to = append(*to, next.InFlight)
	}
	next.InFlight = ""
	return w.tx(how)
}

// deliver puts the next entry in flight.
func deliver(tx *inbox.Tx) error {
	e, err := tx.Next(inbox.Mark{})
	if errors.Is(err, inbox.ErrEmpty) {
		return nil
	}
	if err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	}
	return err
}

func (m *model) deliver() {
	if len(m.Queued) > 0 {
		m.InFlight, m.Queued = m.Queued[0], m.Queued[1:]
	}
}

// kinds are what may happen. Each returns what the model is if it happened wholly.
var kinds = map[string]func(w *world, s step, next *model) error{
	"send": func(w *world, _ step, next *model) error {
		n := w.name()
		next.Queued = append(next.Queued, n)
		_, err := w.box.Append(context.Background(), inbox.Message{Text: n}, 0)
		return err
	},
	"batch": func(w *world, s step, next *model) error {
		var all []inbox.Message
		for range 1 + s.pick%4 {
			n := w.name()
			next.Queued = append(next.Queued, n)
			all = append(all, inbox.Message{Text: n})
		}
		_, err := w.box.AppendAll(context.Background(), all, 0)
		return err
	},
	"deliver": func(w *world, _ step, next *model) error {
		if w.m.InFlight != "" {
			return nil
		}
		next.deliver()
		return w.tx(deliver)
	},
	"turn": func(w *world, _ step, next *model) error {
		if w.m.InFlight == "" {
			return nil
		}
		next.Answered, next.InFlight = append(next.Answered, next.InFlight), ""
		next.deliver()
		return w.tx(func(tx *inbox.Tx) error { return errors.Join(answer(tx), deliver(tx)) })
	},
	"answer": func(w *world, _ step, next *model) error {
		return w.settle(next, answer, &next.Answered)
	},
	"dead letter": func(w *world, _ step, next *model) error {
		return w.settle(next, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }, &next.Dead)
	},
	"drop": func(w *world, _ step, next *model) error {
		return w.settle(next, (*inbox.Tx).Drop, nil)
	},
	"give back": func(w *world, s step, next *model) error {
		if w.m.InFlight == "" {
			return nil
		}
		next.Queued = slices.Insert(next.Queued, 0, next.InFlight)
		return w.settle(next, func(tx *inbox.Tx) error { return tx.GiveBack(s.pick%2 == 0) }, nil)
	},
	"cancel": func(w *world, s step, next *model) error {
		if len(w.m.Queued) == 0 {
			return nil
		}
		i := s.pick % len(w.m.Queued)
		waiting, err := w.waiting()
		if err != nil || i >= len(waiting) {
			return err
		}
		w.canceled = true
		next.Dead = append(next.Dead, next.Queued[i])
		next.Queued = slices.Delete(next.Queued, i, i+1)
		return w.tx(func(tx *inbox.Tx) error {
			_, err := tx.Cancel(waiting[i].EntryID, waiting[i].Start)
			return err
		})
	},
	"pause":  func(w *world, _ step, _ *model) error { return w.tx(pause) },
	"resume": func(w *world, _ step, _ *model) error { return w.tx((*inbox.Tx).Resume) },
	"look":   func(w *world, _ step, _ *model) error { return w.tx(func(*inbox.Tx) error { return nil }) },
	"compact": func(w *world, _ step, _ *model) error {
		_, err := w.box.Compact(context.Background())
		if errors.Is(err, inbox.ErrNoHoles) {
			return nil
		}
		return err
	},
}

// answer says the entry's text, by which its result is known.
func answer(tx *inbox.Tx) error {
	if tx.InFlight() == nil {
		return errors.New("nothing is in flight")
	}
	return tx.Acknowledge(tx.InFlight().Text())
}

func pause(tx *inbox.Tx) error {
	_, err := tx.Pause("", nil)
	return err
}

// others are what other programs and people do: nothing of it can be killed half-way.
var others = map[string]func(w *world, s step) error{
	"echo": func(w *world, _ step) error {
		n := w.name()
		w.m.Queued = append(w.m.Queued, n)
		return w.append(n + "\n")
	},
	"blank line": func(w *world, _ step) error { return w.append("\n") },
	"take out":   func(w *world, s step) error { return w.edit(s, "") },
	"change":     func(w *world, s step) error { return w.edit(s, w.name()) },
	"copy": func(w *world, _ step) error {
		b, err := os.ReadFile(w.box.Path())
		if err != nil || w.m.InFlight == "" && len(w.m.Queued) == 0 || len(b) == 0 {
			return nil // all of it would be new work
		}
		info, err := os.Stat(w.box.Path())
		if err != nil {
			return err
		}
		return errors.Join(w.replace(b), os.Chtimes(w.box.Path(), info.ModTime(), info.ModTime()))
	},
	"chmod": func(w *world, _ step) error {
		err := os.Chmod(w.box.Path(), 0o640)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	},
	"rotate": func(w *world, _ step) error {
		// What was not followed yet may come back: this is no rotation amid a commit.
		if err := w.tx(func(*inbox.Tx) error { return nil }); err != nil {
			return err
		}
		err := os.Remove(w.box.ResultsPath())
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		w.rotated = append(w.rotated, w.m.Answered...)
		w.m.Answered = nil
		return err
	},
}

func (w *world) append(text string) error {
	f, err := os.OpenFile(w.box.Path(), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (w *world) replace(content []byte) error {
	aside := w.box.Path() + ".aside"
	return errors.Join(os.WriteFile(aside, content, 0o600), os.Rename(aside, w.box.Path()))
}

// edit takes the line of an entry that waits in the file out, or gives it another
// text, in place or in a new file.
func (w *world) edit(s step, text string) error {
	if w.canceled {
		return nil
	}
	waiting, err := w.waiting()
	if err != nil {
		return err
	}
	v, err := w.box.View()
	if err != nil {
		return err
	}
	first := 0
	if v.Redeliver() != nil {
		first = 1 // what was given back is in the journal, too, and is not lost with its line
	}
	if err := v.Close(); err != nil || len(waiting) == first {
		return err
	}
	if text == "" && len(waiting) == 1 {
		return nil // the very bytes that were settled, anew, may be new work
	}
	i := first + s.pick%(len(waiting)-first)
	e := waiting[i]
	b, err := os.ReadFile(w.box.Path())
	if err != nil {
		return err
	}
	line := ""
	if text != "" {
		line = text + "\n"
		w.m.Queued[i] = text
	} else {
		w.m.Queued = slices.Delete(w.m.Queued, i, i+1)
	}
	after := slices.Concat(b[:e.Start], []byte(line), b[e.End:])
	last := text == "" && i == len(waiting)-1 // in place, the bytes that were seen before it came would be new work
	if s.pick%2 == 0 || last {
		return w.replace(after)
	}
	return os.WriteFile(w.box.Path(), after, 0o600)
}

func (w *world) waiting() (all []inbox.Waiting, err error) {
	v, err := w.box.View()
	if err != nil {
		return nil, err
	}
	err = v.Waits(nil, func(e inbox.Waiting) bool { all = append(all, e); return true })
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
	if m.Answered, err = names(w.box.ResultsPath()); err == nil {
		m.Dead, err = names(w.box.DeadLetterPath())
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
	if s.kind == "reboot" && len(w.rotated) > 0 {
		return nil // results that were rotated away may come back then
	}
	if s.kind == "reboot" {
		w.boots++
		host.TestOnlyBootID = fmt.Sprint("boot ", w.boots)
		return w.compare(w.m)
	}
	if do, ok := others[s.kind]; ok {
		if err := do(w, s); err != nil {
			return err
		}
		return w.compare(w.m)
	}
	before, next := w.m.clone(), w.m.clone()
	if s.kill == 0 {
		if err := kinds[s.kind](w, s, &next); err != nil {
			return err
		}
		return w.compare(next)
	}
	stop := disktest.Observe(t, disktest.FailFrom(s.kill, unix.EIO, everything...))
	_ = kinds[s.kind](w, s, &next) // it was killed
	stop()
	return w.compare(next, before)
}

// everything is what changes a disk: from a kill on nothing does.
var everything = []disk.Kind{disk.OpCreate, disk.OpWrite, disk.OpTruncate, disk.OpSync, disk.OpSyncDir, disk.OpRemove, disk.OpTouch, disk.OpPunch}

// compare holds what there is against what there may be.
func (w *world) compare(may ...model) error {
	got, err := w.found()
	if err != nil {
		return err
	}
	for _, m := range may {
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
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{LockWait: time.Minute, Now: func() time.Time { return at }})
	if err != nil {
		return 0, err
	}
	w := &world{box: box}
	host.TestOnlyBootID = "boot 0"
	for i, s := range steps {
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
			s.kill = 1 + r.IntN(8)
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

// TestWorlds takes random steps in random worlds. A failure names its seed, and
// the few steps that it needs.
func TestWorlds(t *testing.T) {
	t.Cleanup(func() { host.TestOnlyBootID = "" })
	worlds, steps := 10, 60
	if os.Getenv("HEARTBEAT_LONG") != "" {
		worlds, steps = 200, 90
	}
	for seed := range uint64(worlds) {
		all := draw(seed, steps)
		if at, err := run(t, all); err != nil {
			few := shrink(t, all[:at+1])
			_, again := run(t, few)
			t.Fatalf("seed %d: %v\nthese steps do: %+v\n%v", seed, err, few, again)
		}
	}
}
