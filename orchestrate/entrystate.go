package orchestrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"heartbeat/inbox"
)

// entryState says where an entry is, and what became of it.
type entryState struct {
	where string       // as a Receipt's Found; "" if it is nowhere in the inbox
	dead  inbox.Reason // why it was set aside, "" if it was not
	why   string       // in words
	reply string       // to an entry that was answered
}

func (f entryState) waits() bool { return f.where != "" && f.where != inbox.FoundAnswered }

// stateOf looks an entry up.
func (b *Bridge) stateOf(id string) (entryState, error) {
	where, err := b.find([]string{id})
	if err != nil {
		return entryState{}, err
	}
	return b.stateWhere(id, where)
}

// find says where entries are, as a Receipt's Found, by id.
func (b *Bridge) find(ids []string) (map[string]string, error) {
	v, err := b.Box.View()
	if err != nil {
		return nil, err
	}
	where, err := v.FindAll(ids)
	return where, errors.Join(err, v.Close())
}

// stateWhere is the state of an entry whose place is known.
func (b *Bridge) stateWhere(id string, where map[string]string) (f entryState, err error) {
	f.where = where[id]
	switch {
	case f.waits():
		return f, nil
	case f.where == inbox.FoundAnswered:
		f.reply, err = b.reply(id)
		return f, err
	}
	_, err = b.Box.EachLetter(func(l inbox.Letter) bool {
		if l.ID == id && l.Open() {
			f.dead, f.why = l.Reason, string(l.Reason)
			if run, over := l.OverRun(); over {
				f.why += fmt.Sprintf(": %s: `heartbeat run resume %s --max-cost-per-run USD` has it go on", l.Failure.Message, run)
			}
		}
		return true
	})
	return f, err
}

// reply is the last reply to an entry.
func (b *Bridge) reply(id string) (reply string, err error) {
	tail, err := b.Box.TailResults(-1)
	if err != nil {
		return "", err
	}
	needle, err := json.Marshal(id)
	if err == nil {
		err = tail.Lines(func(line []byte) {
			var r inbox.Result
			if bytes.Contains(line, needle) && json.Unmarshal(line, &r) == nil && r.ID == id {
				reply = r.Reply
			}
		})
	}
	return reply, errors.Join(err, tail.Close())
}
