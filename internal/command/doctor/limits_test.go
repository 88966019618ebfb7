package doctor

import "testing"

func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.says(checkLimits)
	w.NotCounted = func(string) []string { return []string{"nothing is counted"} }
	w.says(checkLimits, "warn nothing is counted")
}
