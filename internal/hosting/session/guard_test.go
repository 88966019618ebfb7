package session

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatAGuardianTriesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		o     Outcome
		err   error
		again bool
	}{
		"finished":                     {Outcome{}, ErrFinished, false},
		"done":                         {Outcome{}, nil, false},
		"the guild lacks something":    {Outcome{Left: true}, nil, true},
		"its end cannot be kept":       {Outcome{}, fmt.Errorf("finish: %w", ErrUnkept), true},
		"its host is about to end":     {Outcome{}, fmt.Errorf("finish: %w", ErrHosted), true},
		"no room to sign the lock":     {Outcome{}, fmt.Errorf("lock: %w", syscall.ENOSPC), true},
		"a record that cannot be read": {Outcome{}, errors.New("no state record"), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.again, isUnfinished(c.o, c.err)) })
	}
}

// A guild that the host trusts is trusted by whoever finishes for it.
func TestFinisherKnowsTheAuthorities(t *testing.T) {
	needed := []string{"HOME=/h", "SSL_CERT_FILE=/ca.pem", "SSL_CERT_DIR=/ca"}
	assert.Equal(t, needed, finisherEnvironment(append([]string{"HTTPS_PROXY=http://p"}, needed...)))
}
