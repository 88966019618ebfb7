package command

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
)

// costOfRun is what the entries of a babysitter run have cost by now, as far as the lines are kept,
// nil if nothing is known. Their ids begin with the run's.
func costOfRun(box *inbox.Inbox, id string) (*price.Price, error) {
	var sum price.Price
	add := func(c price.Line) {
		if strings.HasPrefix(c.ID, id+"/") {
			sum.Amount = sum.Plus(c.Amount)
		}
	}
	now, err := charging.Spending(box, add)
	if err != nil {
		return nil, err
	}
	for c := range now.Open() {
		add(c)
	}
	if sum.IsZero() {
		return nil, nil
	}
	return &sum, nil
}
