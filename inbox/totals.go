package inbox

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/flat"
)

// latencySeconds are the upper bounds of the classes that answers are counted in,
// by the time from an entry's delivery to its acknowledgement.
var latencySeconds = [...]int64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}

// Totals are counts since the inbox's journal began. They only grow, and do not
// depend on which results and dead letters are kept.
type Totals struct {
	Delivered   int64            `json:"delivered"` // redeliveries included
	Redelivered int64            `json:"redelivered"`
	Answered    int64            `json:"answered"`
	Dropped     int64            `json:"dropped"`
	DeadLetters map[Reason]int64 `json:"dead_letters,omitempty"`
	// Latency counts the answers by the time from delivery to acknowledgement.
	Latency    []LatencyClass `json:"latency,omitempty"`
	LatencySum time.Duration  `json:"latency_sum_ns"`
	// LastAcknowledgedAt is nil until an entry was answered.
	LastAcknowledgedAt *time.Time `json:"last_acknowledged_at,omitempty"`

	latency     [len(latencySeconds) + 1]int64
	deadLetters json.RawMessage // as the journal has it
}

// LatencyClass is how many answers took at most Within (0: any time) and longer
// than the class before it allows.
type LatencyClass struct {
	Within time.Duration `json:"within_ns,omitempty"`
	Count  int64         `json:"count"`
}

func (n *Totals) answered(r Result) {
	n.Answered++
	n.LastAcknowledgedAt = &r.AcknowledgedAt
	took := max(0, r.AcknowledgedAt.Sub(r.DeliveredAt)) // the clock may have been set back
	n.LatencySum += took
	class := 0
	for class < len(latencySeconds) && took > time.Duration(latencySeconds[class])*time.Second {
		class++
	}
	n.latency[class]++
}

func (n *Totals) deadLettered(r Reason) {
	by := map[Reason]int64{}
	if json.Unmarshal(n.deadLetters, &by) != nil {
		by = map[Reason]int64{}
	}
	by[r]++
	n.deadLetters, _ = flat.JSON(by) // a map of numbers can always be encoded
}

// complete fills in what is seldom asked for.
func (n Totals) complete() Totals {
	if len(n.deadLetters) > 0 {
		_ = json.Unmarshal(n.deadLetters, &n.DeadLetters) // the record's sum was right
	}
	for i, count := range n.latency {
		c := LatencyClass{Count: count}
		if i < len(latencySeconds) {
			c.Within = time.Duration(latencySeconds[i]) * time.Second
		}
		n.Latency = append(n.Latency, c)
	}
	return n
}

func (n *Totals) encode() []byte {
	var o flat.Object
	o.Int("delivered", n.Delivered)
	o.Int("redelivered", n.Redelivered)
	o.Int("answered", n.Answered)
	o.Int("dropped", n.Dropped)
	o.Raw("dead_letters", n.deadLetters)
	counts := []byte{'"'}
	for i, c := range n.latency {
		if i > 0 {
			counts = append(counts, ' ')
		}
		counts = strconv.AppendInt(counts, c, 10)
	}
	o.Raw("latency", append(counts, '"'))
	o.Int("latency_sum_ns", int64(n.LatencySum))
	if n.LastAcknowledgedAt != nil {
		o.Time("last_acknowledged_at", *n.LastAcknowledgedAt)
	}
	return o.End()
}

func decodeTotals(record []byte) (*Totals, error) {
	n := new(Totals)
	if len(record) == 0 {
		return n, nil
	}
	m, err := flat.Parse(record)
	if err != nil {
		return nil, err
	}
	n.Delivered, n.Redelivered = m.Int("delivered"), m.Int("redelivered")
	n.Answered, n.Dropped = m.Int("answered"), m.Int("dropped")
	n.deadLetters = m.Raw("dead_letters")
	n.LatencySum = time.Duration(m.Int("latency_sum_ns"))
	for i, c := range strings.Fields(m.String("latency")) {
		if i < len(n.latency) {
			if n.latency[i], err = strconv.ParseInt(c, 10, 64); err != nil {
				return nil, err
			}
		}
	}
	if m.Has("last_acknowledged_at") {
		at := m.Time("last_acknowledged_at")
		n.LastAcknowledgedAt = &at
	}
	return n, m.Err()
}
