package names_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/names"
)

// Every pair of subjects of up to three such words is judged as a server judges it.
func TestSubjectsAreJudgedAsAServerDoes(t *testing.T) {
	words := []string{"a", "b", "*", ">", "a*", ""}
	var all []string
	for _, one := range words {
		all = append(all, one)
		for _, two := range words {
			all = append(all, one+"."+two)
			for _, three := range words {
				all = append(all, one+"."+two+"."+three)
			}
		}
	}
	var valid []string
	for _, s := range append(all, "a b", "a.\tb", "\n") {
		assert.Equal(t, server.IsValidSubject(s), names.IsSubject(s), "%q", s)
		if names.IsSubject(s) {
			valid = append(valid, s)
		}
	}
	for _, a := range valid {
		for _, b := range valid {
			assert.Equal(t, server.SubjectsCollide(a, b), names.Collide(a, b), "%q, %q", a, b)
			assert.Equal(t, server.SubjectMatchesFilter(a, b), names.Covers(b, a), "%q, %q", b, a)
		}
	}
}
