package prompt

import (
	"strconv"
	"time"
)

// TimeLimit is how long an agent, a skill or an orchestrator task may take; 0 if the task
// does not say. Processes put it in several places.
func (e Effect) TimeLimit() time.Duration {
	var places []byte
	switch e.known() {
	case "agent", "skill":
		places = member(e.Task, e.Kind)
	case "orchestrator_task":
		places = e.payload()
	default:
		return 0
	}
	for _, place := range [][]byte{places, member(places, "constraints"), member(e.Task, "execution")} {
		for _, name := range []string{"timeoutMs", "timeout"} {
			ms, err := strconv.ParseFloat(text(place, name), 64)
			if limit := time.Duration(ms * float64(time.Millisecond)); err == nil && limit > 0 {
				return limit
			}
		}
	}
	return 0
}

// limit writes the time limit.
func (e Effect) limit(w *writer) {
	if limit := e.TimeLimit(); limit > 0 {
		w.gap()
		w.line("It is to be done within ", limit.String(), ". After that the run is told that it was not.")
	}
}
