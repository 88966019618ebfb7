package launch

import (
	"heartbeat/internal/launch/recording"
	"heartbeat/internal/launch/terminal"
)

// record adds to the options that all sessions run with them are recorded to a file,
// one after the other, until stop is called. Other watchers go on watching. An empty
// path records nothing.
func record(o *terminal.Options, path string, m *messages) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	r, err := recording.Create(path, func(err error) {
		m.say("the recording %s does not take the output (%v): lines that it does not take are left out, and the session goes on", path, err)
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
			m.say("record: %v", err)
		}
	}, nil
}
