package orchestrate

import (
	"bytes"
	"encoding/json"
	"errors"

	"heartbeat/inbox"
)

// fate is what became of an entry.
type fate struct {
	where string // a Receipt's Found, "" for one that is nowhere
	dead  inbox.Reason
	reply string // of an answered one
}

func (f fate) waits() bool { return f.where != "" && f.where != inbox.FoundAnswered }

// fateOf looks for the entry of that id.
func (b *Bridge) fateOf(id string) (f fate, err error) {
	v, err := b.Box.View()
	if err != nil {
		return f, err
	}
	f.where, err = v.Find(id)
	if err = errors.Join(err, v.Close()); err != nil || f.waits() {
		return f, err
	}
	if f.where == inbox.FoundAnswered {
		f.reply, err = b.reply(id)
		return f, err
	}
	letters, _, err := b.Box.Letters()
	for _, l := range letters {
		if l.ID == id && l.RequeuedAt == nil {
			f.dead = l.Reason
		}
	}
	return f, err
}

// reply is what was answered last to an entry.
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
