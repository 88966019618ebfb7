package folder

import (
	"encoding/json"
	"fmt"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// maxState is the largest record, in bytes, that is read or written. The config's
// metadata and unknown keys, which a record repeats, have 64 MiB between them.
const maxState = 80 << 20

// Read reads the record. If there is none the error matches [fs.ErrNotExist].
func (f Folder) Read() (*State, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	b, err := disk.ReadState(f.StatePath(), maxState)
	if err != nil {
		return nil, fmt.Errorf("read the state of session %s: %w", f.ID, err)
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read the state of session %s: %s is no state record: %w", f.ID, f.StatePath(), err)
	}
	return s, nil
}

// Write replaces the record, durably. The state must not change meanwhile.
func (l *Lock) Write(s *State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := flat.JSON(s)
	if err == nil {
		err = l.lock.Check()
	}
	if err == nil {
		err = disk.Publish(l.folder.StatePath(), b, true)
	}
	if err != nil {
		return fmt.Errorf("write the state of session %s: %w", l.folder.ID, err)
	}
	return nil
}
