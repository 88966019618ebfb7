package managed

import (
	"context"
	"slices"
	"time"

	"heartbeat/internal/notify"
)

// tellTime is how long a launcher stays, at its end, until a person was told of what
// needs one.
const tellTime = 45 * time.Second

// needPerson are the reasons to give up that nothing on the disk shows, and that do not
// pass by themselves. A pause and a run's question are on the disk.
var needPerson = []Reason{Full, Exhausted, SetUp, RunStuck}

// tell starts what tells a person. That it cannot is said, and keeps nobody from the work.
func (r *run) tell() {
	note := func(text string) { r.Line(time.Now(), text) }
	var err error
	if r.tells, err = notify.StartHelper(r.Notify, note); err != nil {
		note(err.Error())
	}
	r.tells.Follow(r.box.Path(), "heartbeat-launch")
}

// tellEnd has a person told of what the last session left, and why the work ends.
func (r *run) tellEnd(e *ending) {
	if slices.Contains(needPerson, e.reason) {
		r.tells.Say(notify.Words{Reason: string(e.reason), Sentence: "heartbeat-launch has given up: " + string(e.reason) + ": " + e.detail})
	}
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, tellTime)
	defer stop()
	r.tells.Stop(ctx)
}
