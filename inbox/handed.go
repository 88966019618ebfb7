package inbox

import "fmt"

// HandedOver notes that the text of the entry in flight went out whole, which
// only its deliverer knows, and only after Commit. The note is not synced: a
// power loss that takes it also ends the process that got the text. A kill does
// not take it, so without a note it is uncertain whether the text went out.
//
// The note belongs to that one delivery, and later commits keep it.
func (t *Tx) HandedOver() error {
	if t.inFlight == nil {
		return fmt.Errorf("note that an entry was handed over: %w", errNothingInFlight)
	}
	t.st.Handed = true
	if t.dirty || !t.store.Followed() {
		return nil // the next commit carries it
	}
	if err := t.store.HandedOver(); err != nil {
		return fmt.Errorf("note that the entry %s was handed over: %w", t.inFlight.label(), err)
	}
	return nil
}

// IsHandedOver reports whether [Tx.HandedOver] was noted for the entry in flight.
func (t *Tx) IsHandedOver() bool { return t.inFlight != nil && t.st.Handed }
