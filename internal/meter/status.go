package meter

import (
	"errors"
	"fmt"
	"strconv"

	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// ParseStatus reads what the client gives to its status line: one JSON object. What it
// does not have is unknown; the caller adds the client's process. It is an error if
// there is no session, or a figure that cannot be.
func ParseStatus(stdin []byte) (Reading, error) {
	m, err := flat.Parse(stdin)
	if err != nil {
		return Reading{}, fmt.Errorf("read what the status line says: %w", err)
	}
	r := Reading{
		Session: m.String("session_id"), Transcript: m.String("transcript_path"),
		ContextPercent: -1, Model: m.Value("model").Get("id").Text(),
	}
	if r.Session == "" {
		return Reading{}, errors.New("read what the status line says: it has no session_id")
	}
	if total := m.Value("cost").Get("total_cost_usd"); total != "" && total != "null" {
		if r.Total, err = price.DollarsOf(string(total)); err == nil && r.Total < 0 {
			err = errors.New("it is negative")
		}
		if err != nil {
			return Reading{}, fmt.Errorf("read what the status line says: its cost.total_cost_usd: %w", err)
		}
		r.HasTotal = true
	}
	window := m.Value("context_window")
	if percent, err := strconv.ParseFloat(string(window.Get("used_percentage")), 64); err == nil && percent >= 0 && percent <= 1000 {
		r.ContextPercent = percent
	}
	if usage := window.Get("current_usage"); len(usage) > 0 && usage[0] == '{' {
		t := usageOf(usage).Tokens
		r.Usage = &t
	}
	return r, nil
}
