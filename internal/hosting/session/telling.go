package session

import (
	"sync/atomic"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/notify"
)

// tellWait is how long a host stays, at the session's end, until a person was told of
// what needs one.
const tellWait = 45 * time.Second

// telling has a person told of what happens in the session's inbox. The process that
// tells is started before this one adopts others.
type telling struct {
	helper *notify.Helper      // nil where nobody is told
	log    atomic.Pointer[log] // nil while there is none
}

func newTelling(o notify.Options) *telling {
	t := &telling{}
	var err error
	if t.helper, err = notify.StartHelper(o, t.note); err != nil {
		t.note(err.Error())
	}
	return t
}

func (t *telling) note(text string) {
	if l := t.log.Load(); l != nil {
		l.line(text)
	}
}

// follow begins to tell of the session's inbox.
func (h *host) follow(inbox string) {
	h.telling.log.Store(h.log)
	h.telling.helper.Follow(inbox, "heartbeat-host of session "+h.Config.SessionID)
}

// stop ends the telling of a session that did not begin.
func (t *telling) stop() {
	ctx, cancel := within(time.Second)
	defer cancel()
	t.helper.Stop(ctx)
}

// tellEnd has a person told of what the session left, and of its failure.
func (h *host) tellEnd(hurry <-chan struct{}, d Decision) {
	if d.State == folder.Failed {
		h.telling.helper.Say(notify.Words{Reason: "session failed", Sentence: "the session " + h.Config.SessionID + " failed: " + d.Error})
	}
	ctx, cancel := withinUnless(hurry, tellWait)
	defer cancel()
	h.telling.helper.Stop(ctx)
}
