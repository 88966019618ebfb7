package inbox

import (
	"fmt"

	"heartbeat/internal/disk"
)

const (
	// triesName is there while a large line is being taken up, so that whoever comes
	// next knows if that killed the process.
	triesName = ".inbox-tries"
	// largeLine is from where on that is noted, and maxTries how often it may.
	largeLine = 1 << 20
	maxTries  = 3
)

// tryLarge notes, unsynced, that a large line is about to be taken up, and reports
// whether that killed whoever tried so often that it is to be set aside.
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
	return false, disk.Publish(t.box.file(triesName), fmt.Appendf(nil, "%d %d %d %d\n", t.st.QueueGeneration, l.start, l.end, note.tries+1), false)
}

// triesNote is what triesName says: how often a line was taken up.
type triesNote struct {
	generation int // of the queue file, -1 where there is no note
	start, end int64
	tries      int
}

func (t *Tx) readTries() (triesNote, error) {
	none := triesNote{generation: -1}
	f, err := openState(t.box.file(triesName))
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

// survived takes the note away: the process lives.
func (t *Tx) survived() error {
	if !t.trying {
		return nil
	}
	t.trying = false
	return disk.Remove(t.box.file(triesName))
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
