package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Whoever asks once more for the end of a session that is ending cuts all its steps short, also those that begin later.
func TestTheNextRequestEndsEveryStep(t *testing.T) {
	for _, before := range []int{0, 1, 2} {
		r := &request{made: make(chan struct{}), again: make(chan struct{}, 1)}
		for range before {
			r.make(time.Hour)
		}
		patient, stop := r.untilNext()
		defer stop()
		first, stopFirst := context.WithTimeout(patient, time.Hour)
		defer stopFirst()
		assert.NoError(t, patient.Err(), "the earlier requests were about the client")
		r.make(time.Hour)
		<-first.Done()
		second, stopSecond := context.WithTimeout(patient, time.Hour)
		defer stopSecond()
		<-second.Done()
	}
}
