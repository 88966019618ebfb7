package inbox

import (
	"fmt"

	"heartbeat/internal/disk"
)

const (
	// triesName exists while a large line is being read for delivery, so that the
	// next process knows if that killed this one.
	triesName = ".inbox-tries"
	// largeLine is the size from which that is noted, and maxTries how often it
	// is tried.
	largeLine = 1 << 20
	maxTries  = 3
)

// tryLarge notes, unsynced, that a large line is about to be read, and reports
// whether that was tried so often, and killed each process, that the line is to
// be set aside.
func (t *Tx) tryLarge(l line) (died bool, err error) {
	if l.end-l.start <= largeLine {
		return false, nil
	}
	note, err := t.readTries()
	if err != nil {
		return false, err
	}
	if note.generation != t.st.QueueGeneration || note.start != l.start || note.end != l.end {
		note.tries = 0
	}
	if note.tries >= maxTries {
		t.forget = append(t.forget, triesName)
		return true, nil
	}
	t.trying = true
	return false, disk.Publish(t.box.beside(triesName), fmt.Appendf(nil, "%d %d %d %d\n", t.st.QueueGeneration, l.start, l.end, note.tries+1), false)
}

// triesNote is what the file says: how often a line was tried.
type triesNote struct {
	generation int // of the queue file, -1 if there is no note
	start, end int64
	tries      int
}

func (t *Tx) readTries() (triesNote, error) {
	none := triesNote{generation: -1}
	f, err := openState(t.box.beside(triesName))
	if f == nil || err != nil {
		return none, err
	}
	said := make([]byte, min(f.Info().Size, 256))
	_, err = f.ReadAt(said, 0)
	if err := firstError(err, f.Close()); err != nil {
		return none, err
	}
	var n triesNote
	if read, _ := fmt.Sscan(string(said), &n.generation, &n.start, &n.end, &n.tries); read != 4 {
		return none, nil
	}
	return n, nil
}

// survived removes the note: the process is alive.
func (t *Tx) survived() error {
	if !t.trying {
		return nil
	}
	t.trying = false
	return disk.Remove(t.box.beside(triesName))
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
