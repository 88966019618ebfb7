package doctor

import "testing"

func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.says(checkLimits)
	w.NotCounted = func(string) []string { return []string{"nothing is counted"} }
	w.says(checkLimits, "warn nothing is counted")
}

func TestPrices(t *testing.T) {
	w := newWorld(t)
	w.Prices = func(string) string { return "" }
	w.says(checkPrices)
	w.Prices = func(string) string { return "the table may be out of date" }
	w.says(checkPrices, "warn the table may be out of date")
}
