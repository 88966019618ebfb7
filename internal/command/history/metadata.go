package history

import (
	"encoding/json"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
)

// described is what a settled entry says about itself.
type described struct {
	entryID  string
	metadata map[string]json.RawMessage
}

// Metadata calls tell with the metadata of each settled entry that is wanted and kept.
// It decodes nothing else of their lines, and returns notes about lines that it left
// out.
func Metadata(box *inbox.Inbox, wanted func(entryID string) bool, tell func(entryID string, metadata map[string]json.RawMessage)) (notes []string, err error) {
	parse := func(l []byte) (d described, ok bool) {
		m, err := flat.Parse(l)
		if err != nil {
			return d, false
		}
		d.entryID = m.String("entry_id")
		if d.entryID == "" {
			return d, m.Has("raw_line") || m.Has("raw_base64") // a letter by hand
		}
		if !wanted(d.entryID) || m.Has("requeued_at") { // which a mark has, and no metadata
			return described{}, true
		}
		if raw := m.Raw("metadata"); raw != nil && json.Unmarshal(raw, &d.metadata) != nil {
			return d, false
		}
		return d, true
	}
	for _, source := range []Source[described]{
		{box.ResultsPath(), box.TailResults, parse, "result"},
		{box.DeadLetterPath(), box.TailDeadLetters, parse, "dead letter"},
	} {
		r, err := source.Last(0, func(d described, _ []byte) {
			if wanted(d.entryID) {
				tell(d.entryID, d.metadata)
			}
		})
		if err != nil {
			return notes, err
		}
		notes = append(notes, r.Notes()...)
		if err := r.Close(); err != nil {
			return notes, err
		}
	}
	return notes, nil
}
