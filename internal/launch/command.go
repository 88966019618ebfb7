package launch

import (
	"heartbeat/internal/launch/terminal"
	"heartbeat/internal/words"
)

// run runs the command once, and tells the exit status.
func (c *commandFlags) run(o terminal.Options, m *messages) int {
	outcome, err := c.runRecorded(o, m)
	if err != nil {
		m.say("%v", err)
		return statusOfError(err)
	}
	c.explain(outcome, m)
	return statusOfOutcome(outcome)
}

func (c *commandFlags) runRecorded(o terminal.Options, m *messages) (terminal.Outcome, error) {
	stop, err := record(&o, c.recording, m)
	if err != nil {
		return terminal.Outcome{}, err
	}
	defer stop()
	return terminal.Run(o)
}

// explain says why the command was ended, unless it was asked for or ended by itself.
func (c *commandFlags) explain(o terminal.Outcome, m *messages) {
	switch o.Cause {
	case terminal.TimedOut:
		m.say("the command was ended after %v, which --timeout gives it", &c.timeout)
	case terminal.GaveUp:
		m.say("the command was ended: no output for %v, and nothing typed brought it back to life (%s)", &c.idle, words.Count(c.retries, "try", "tries"))
	case terminal.Signalled:
		m.say("the command was ended, since this process got a signal: %v", o.Signal)
	}
}
