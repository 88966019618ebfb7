package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// mark is what an inbox had counted when the session began.
type mark struct {
	Answered    int64 `json:"answered"`
	DeadLetters int64 `json:"dead_letters"`
	Dropped     int64 `json:"dropped"`
	Seq         int64 `json:"seq"` // number of the next commit: see [inbox.Tx.Seq]
}

func countsOf(n inbox.Totals) (m mark) {
	m.Answered, m.Dropped = n.Answered, n.Dropped
	for _, of := range n.DeadLetters {
		m.DeadLetters += of
	}
	return m
}

// loadMark reads the mark of an earlier host of the session.
func (q *Queue) loadMark() (m mark, err error) {
	if q.o.Own || q.o.Mark == "" {
		return m, nil
	}
	text, err := disk.ReadState(q.o.Mark, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read what was in the inbox when the session began: %s: %w", q.o.Mark, err)
	}
	return m, nil
}

// keepMark keeps a mark for the session, unless it has one.
func (q *Queue) keepMark() error {
	if q.o.Own || q.o.Mark == "" || q.mark != (mark{}) {
		return nil
	}
	v, err := q.box.View()
	if err != nil {
		return err
	}
	totals, err := v.Totals()
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	q.mark = countsOf(totals)
	if err := q.transact(context.Background(), func(tx *inbox.Tx) error { q.mark.Seq = tx.Seq(); return nil }); err != nil {
		return err
	}
	text, err := json.Marshal(q.mark)
	if err != nil {
		return err
	}
	if err := disk.Publish(q.o.Mark, append(text, '\n'), true); err != nil {
		return fmt.Errorf("keep what is in the inbox as the session begins: %w", err)
	}
	return nil
}
