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
	path := t.box.file(triesName)
	tries := 0
	f, err := openState(path)
	if err != nil {
		return false, err
	}
	if f != nil {
		note := make([]byte, min(f.Info().Size, 256))
		_, err := f.ReadAt(note, 0)
		if err := firstError(err, f.Close()); err != nil {
			return false, err
		}
		var generation int
		var start, end int64
		if n, _ := fmt.Sscan(string(note), &generation, &start, &end, &tries); n != 4 || generation != t.st.QueueGen || start != l.start || end != l.end {
			tries = 0
		}
	}
	if tries >= maxTries {
		t.forget = append(t.forget, triesName)
		return true, nil
	}
	t.trying = true
	return false, disk.Publish(path, fmt.Appendf(nil, "%d %d %d %d\n", t.st.QueueGen, l.start, l.end, tries+1), false)
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
