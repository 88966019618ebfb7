package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	inboxclaim "heartbeat/internal/claim"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/hosting/transcript"
	"heartbeat/internal/words"
)

// show writes the guild's table, which the guild may look at once it has the report, and
// notes what that lacks.
func (e *finisher) show(ctx context.Context) {
	id := e.snapshot().SessionID
	short, cancel := context.WithTimeout(ctx, showWait)
	defer cancel()
	err := showBehind(short, e.db, id, nil)
	waiting, _ := e.db.Waiting(ctx, id) // which was asked a moment ago
	e.change(func(s *folder.State) {
		s.Waiting, s.Store = waiting, ""
		if err != nil {
			s.Store = "the transcript cannot be written to the guild's table, and is tried again (" + err.Error() + ")"
		}
	})
}

// recount adds up again what the client's messages said: the host noted that now and
// then only.
func (e *finisher) recount(ctx context.Context) error {
	var t stream.Tally
	s := e.snapshot()
	last := int64(0)
	for m, err := range transcript.ReadEnded(ctx, e.transcript(), 1) {
		if err != nil {
			return err
		}
		last = max(last, m.N)
		if m.At.Before(s.HostedAt.Truncate(time.Millisecond)) {
			continue // of a life before this one
		}
		if parsed, ok := stream.Parse(m.Content); ok {
			t.Add(parsed, m.At)
		}
	}
	if s.Rounds > 1 { // which messages are of which client is not stored
		t.Usage, t.Cost, t.Result, t.SessionID = nil, nil, nil, ""
	}
	stored, count, err := e.db.Last(ctx, s.SessionID)
	if err != nil {
		return err
	}
	e.change(func(s *folder.State) {
		if s.Lost = stored - count + max(s.Messages-last, 0); s.Lost > 0 { // the host had them in memory alone
			addWarning(s, fmt.Sprintf("%s lost", words.Count(int(s.Lost), "message is", "messages are")))
		}
		s.Messages = max(s.Messages, last)
		if t.Messages > 0 {
			tallied(s, &t)
		}
	})
	return nil
}

// settleEntries does for a dead host what it does at its client's end.
func (e *finisher) settleEntries(ctx context.Context) error {
	q, err := queue.Open(queueOptions(e.folder, e.snapshot(), e.log.line))
	if err != nil {
		return err
	}
	var busy inboxclaim.BusyError
	switch err := q.Claim(ctx); {
	case errors.As(err, &busy): // what is in flight now is not this session's
		e.log.linef("the entries are left to who works on %s now: %v", q.Path(), err)
		return e.count(q)
	case err != nil:
		return err
	}
	return errors.Join(e.settle(ctx, q, exitSeen(e.snapshot())), q.Close())
}

// exitSeen is what a dead host saw of its client's end.
func exitSeen(s folder.State) (x queue.Exit) {
	if s.Cancel != nil {
		x.Reason = inbox.ReasonCanceled
	}
	if s.Exit != nil && s.Result != nil && !s.Result.IsError && s.Result.Subtype == "success" && s.Result.NumTurns > 0 {
		x.Turn = &queue.Turn{Reply: s.Output, At: s.Result.At}
	}
	return x
}
