package inbox

import (
	"encoding/json"
	"fmt"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// read reads the journal and then opens the queue file, in this order: without
// the lock, a file that is older than the record would seem to have shrunk.
func (t *Tx) read() (*journal.Loaded, error) {
	l, err := t.store.Load()
	if err != nil {
		return nil, err
	}
	t.st = *l.Record
	if t.st.DigestEnd != t.st.Cursor { // a journal without a digest
		t.forgetDigest()
	}
	if err := t.openFile(); err != nil {
		return nil, err
	}
	if t.inFlight, err = ownDelivery(t.st.InFlight); err != nil {
		return nil, err
	}
	if t.redeliver, err = ownDelivery(t.st.Redeliver); err != nil {
		return nil, err
	}
	t.here = t.writtenHere()
	return l, t.claim()
}

// ownDelivery reads an entry of a journal record, or nothing.
func ownDelivery(record json.RawMessage) (*Delivery, error) {
	if len(record) == 0 {
		return nil, nil
	}
	d := new(Delivery)
	m, err := flat.Parse(record)
	if err == nil {
		err = d.decode(m)
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: entry in flight: %w: %w", ErrCorrupt, err)
	}
	return d, nil
}

// claim refuses a directory whose state belongs to another inbox, unless that
// inbox is gone and left nothing in flight: then it was renamed.
func (t *Tx) claim() error {
	if t.st.Inbox == "" || t.st.Inbox == t.box.name {
		t.st.Inbox = t.box.name
		return nil
	}
	other := t.box.beside(t.st.Inbox)
	there, err := disk.Exists(other)
	if err != nil {
		return err
	}
	if there || t.inFlight != nil || t.redeliver != nil {
		return fmt.Errorf("the state in %s belongs to the inbox %s: give %s a directory of its own (or, if it is %s renamed, recover under the old name first): %w",
			t.box.dir, t.st.Inbox, t.box.name, t.st.Inbox, ErrOtherInbox)
	}
	t.warn("taking over the state of %s, which is gone", other)
	t.st.Inbox, t.dirty = t.box.name, true
	return nil
}
