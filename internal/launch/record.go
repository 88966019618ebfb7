package launch

import (
	"heartbeat/internal/launch/recording"
	"heartbeat/internal/launch/terminal"
)

func (l *launch) runRecorded(o terminal.Options, v *voice) (terminal.Outcome, error) {
	stop, err := l.record(&o, v)
	if err != nil {
		return terminal.Outcome{}, err
	}
	defer stop()
	return terminal.Run(o)
}

// record has all sessions that are run with these options recorded one behind the
// other, where --record asks for it, until stop is called. What else watches them
// goes on doing so.
func (l *launch) record(o *terminal.Options, v *voice) (stop func(), err error) {
	if l.recording == "" {
		return func() {}, nil
	}
	r, err := recording.Create(l.recording, func(err error) {
		v.say("the recording %s does not take the output (%v): lines that it does not take are left out, and the session goes on", l.recording, err)
	})
	if err != nil {
		return nil, err
	}
	watch, resized := o.Watch, o.Resized
	o.Watch = func(b []byte) {
		r.Output(b)
		if watch != nil {
			watch(b)
		}
	}
	o.Resized = func(s terminal.Size) {
		r.Resize(s.Rows, s.Cols)
		if resized != nil {
			resized(s)
		}
	}
	return func() {
		if err := r.Close(); err != nil {
			v.say("record: %v", err)
		}
	}, nil
}
