package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"heartbeat/internal/fleet/link"
)

// retry is how often something has failed in a row, and when it is due again.
type retry struct {
	at       time.Time
	tries    int
	why      string
	noQuorum bool // that is why, which was said
}

func (a *Agent) due(what string) bool { return !time.Now().Before(a.retries[what].at) }

// try notes the result of a repeated attempt, and reports whether it succeeded. It says the first failure in a row, and a
// lost quorum once servers notice that they are too few. The connection tells of what its end cut off.
func (a *Agent) try(what string, err error) bool {
	r := a.retries[what]
	switch {
	case err == nil:
		if over[what] != "" && r.tries > 0 {
			a.say(over[what])
		}
		delete(a.retries, what)
		return true
	case errors.Is(err, nats.ErrDisconnected):
		r.at, r.why = time.Now().Add(backOff(1)), err.Error()
		a.retries[what] = r
		return false
	}
	r.tries++
	isNews, asks := r.tries == 1, r.tries&(r.tries-1) == 0
	if !r.noQuorum && asks && !errors.Is(err, link.ErrNoQuorum) && errors.Is(a.conn.Explain(err), link.ErrNoQuorum) {
		err = fmt.Errorf("%w (%w)", err, link.ErrNoQuorum)
	}
	if !r.noQuorum && errors.Is(err, link.ErrNoQuorum) {
		r.noQuorum, isNews = true, true
	}
	r.at, r.why = time.Now().Add(backOff(r.tries)), err.Error()
	a.retries[what] = r
	if isNews {
		a.say(err.Error())
	}
	return false
}

// over is what is said once something works again that nothing else tells of.
var over = map[string]string{asking: "messages can be asked for again", showing: "others see again what this agent does"}

func backOff(try int) time.Duration { return min(maxDelay, 100*time.Millisecond<<min(try-1, 10)) }
