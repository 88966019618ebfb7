package inbox

import "fmt"

// count changes the totals with the next commit.
func (t *Tx) count(change func(*Totals)) {
	n, err := t.readTotals()
	if err != nil {
		t.warn("the totals start again from 0: %v", err)
		n = new(Totals)
		t.totals = n
	}
	change(n)
}

func (t *Tx) readTotals() (_ *Totals, err error) {
	if t.totals == nil {
		if t.totals, err = decodeTotals(t.st.Totals); err != nil {
			return nil, fmt.Errorf("read journal: totals: %w: %w", ErrCorrupt, err)
		}
	}
	return t.totals, nil
}
