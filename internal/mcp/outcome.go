package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// outcomeOf is the last outcome of the entry of that name.
func outcomeOf(box *inbox.Inbox, id string) (o inbox.Outcome, err error) {
	needle, err := json.Marshal(id)
	if err != nil {
		return o, err
	}
	plain := bytes.Trim(needle, `"`)
	may := func(line []byte) bool { return bytes.Contains(line, plain) || bytes.IndexByte(line, '\\') >= 0 }
	results, err := box.TailResults(-1)
	if err != nil {
		return o, err
	}
	err = results.Lines(func(line []byte) {
		var r inbox.Result
		if may(line) && json.Unmarshal(line, &r) == nil && r.ID == id {
			o.Result = &r
		}
	})
	if err = errors.Join(err, results.Close()); err != nil || o.Result != nil {
		return o, err
	}
	letters, err := box.TailDeadLetters(-1)
	if err != nil {
		return o, err
	}
	err = letters.Lines(func(line []byte) {
		if !may(line) {
			return
		}
		if l, mark, ok := inbox.ParseLetter(line); ok && !mark && l.ID == id {
			o.DeadLetter = &l.DeadLetter
		}
	})
	return o, errors.Join(err, letters.Close())
}

// checkSame refuses a name that an entry with another text has, and says whose that is.
func checkSame(box *inbox.Inbox, m inbox.Message) error {
	if m.ID == "" {
		return nil
	}
	other, where, err := otherText(box, m)
	if err != nil || where == "" {
		return err
	}
	return fmt.Errorf("the id %q is that of another entry, which %s and whose text begins %q: choose another id, or leave it out", m.ID, where, words.Brief(other))
}

// otherText is the text of an entry that has the message's name and another text, and where
// that entry is; where is "" if there is none.
func otherText(box *inbox.Inbox, m inbox.Message) (text, where string, err error) {
	note := func(id, its, at string) {
		if id == m.ID && its != m.Text {
			text, where = its, at
		}
	}
	v, err := box.View()
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		note(d.ID(), d.Text(), "is in flight")
	}
	if err := v.Waits(nil, func(w inbox.Waiting) bool { note(w.ID, w.Text, "waits"); return where == "" }); err != nil || where != "" {
		return text, where, err
	}
	scheduled, err := box.Scheduled()
	for _, s := range scheduled {
		note(s.ID, s.Text, "waits for its time")
	}
	if err != nil || where != "" {
		return text, where, err
	}
	o, err := outcomeOf(box, m.ID)
	if r := o.Result; r != nil && !strings.HasPrefix(m.Text, r.Prompt) { // results keep the beginning
		text, where = r.Prompt, "was answered"
	}
	return text, where, err
}
