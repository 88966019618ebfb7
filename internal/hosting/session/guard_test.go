package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
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

// A folder that somebody else can change is no place for sessions, until a person has acted.
func TestClaimBesideAForeignFolder(t *testing.T) {
	db := filepath.Join(t.TempDir(), "nexus.db")
	require.NoError(t, os.Mkdir(folder.Root(db), 0o700))
	require.NoError(t, os.Chmod(folder.Root(db), 0o777))
	f, err := folder.At(db, "ses-1")
	require.NoError(t, err)
	_, err = claim(f, false)
	var problem *config.Problem
	require.ErrorAs(t, err, &problem)
	assert.Equal(t, "dbPath", problem.Path)
	assert.ErrorContains(t, err, "others may write to "+folder.Root(db))
}
