package mcp

import (
	"bytes"
	"encoding/json"
	"errors"

	"heartbeat/inbox"
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
