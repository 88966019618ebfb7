package worlds_test

import (
	"errors"
	"os"
	"slices"

	"heartbeat/inbox"
)

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
		// What was not followed yet may come back: this rotation is not during a commit.
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
		return nil // the same bytes as settled ones, written again, may be new work
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
