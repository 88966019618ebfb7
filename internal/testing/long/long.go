// Package long decides how often tests repeat themselves: everything once by
// default, the exhaustive rounds where HEARTBEAT_LONG is set, as .ci/run does.
package long

import "os"

// Wanted reports whether the exhaustive rounds are to run.
func Wanted() bool { return os.Getenv("HEARTBEAT_LONG") != "" }

// Rounds returns few, or many for the exhaustive rounds.
func Rounds(few, many int) int {
	if Wanted() {
		return many
	}
	return few
}
