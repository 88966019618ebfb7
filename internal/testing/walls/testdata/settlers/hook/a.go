// Package hook is a file that a wall's test looks into.
package hook

func f(tx interface{ GiveBack(bool) error }, upstream interface{ GiveBack(bool) error }) error {
	_ = upstream.GiveBack(true)
	return tx.GiveBack(false)
}
