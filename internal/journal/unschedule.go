package journal

import (
	"bytes"
	"errors"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// unschedule takes lines out of .scheduled.jsonl, given by their ids: their entries
// are in the queue by now, or were canceled. It is durable when it returns, since
// they must not be appended once more.
func (s *Store) unschedule(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	file := &s.files[Scheduled]
	before, err := file.Content()
	if err != nil {
		return err
	}
	after := make([]byte, 0, len(before))
	for l := range bytes.Lines(before) {
		if !gone[lines.ID(bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r")))] {
			after = append(after, l...)
		}
	}
	if len(after) == len(before) {
		return nil
	}
	if err := s.StillLocked(); err != nil {
		return err
	}
	return errors.Join(file.Close(), disk.Publish(file.path, after, true))
}
