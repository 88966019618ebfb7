package signals_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/host/signals"
)

func send(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(syscall.Getpid(), sig))
}

// TestEverybodyIsTold of a signal, also who asks long after it, and the first one
// is the reason.
func TestEverybodyIsTold(t *testing.T) {
	s := signals.Take()
	defer s.Stop()
	before, cancel := s.Context()
	defer cancel()
	got, _ := s.Signal()
	assert.Zero(t, got)

	send(t, syscall.SIGTERM)
	<-s.First()
	<-before.Done()
	after, cancel := s.Context()
	defer cancel()
	<-after.Done()
	got, at := s.Signal()
	assert.Equal(t, syscall.SIGTERM, got)
	assert.False(t, at.IsZero())
	select {
	case <-s.Second():
		t.Fatal("there was one")
	default:
	}

	hurry, cancel := s.Hurry(time.Hour)
	defer cancel()
	require.NoError(t, hurry.Err())
	send(t, syscall.SIGINT)
	<-s.Second()
	<-hurry.Done()
	got, _ = s.Signal()
	assert.Equal(t, syscall.SIGTERM, got)
}

// TestHurry leaves a second, however short the grace.
func TestHurry(t *testing.T) {
	s := signals.Take()
	defer s.Stop()
	ctx, cancel := s.Hurry(0)
	defer cancel()
	_, limited := ctx.Deadline()
	assert.False(t, limited, "no signal has come")

	send(t, syscall.SIGHUP)
	<-s.First()
	_, at := s.Signal()
	for grace, want := range map[time.Duration]time.Time{0: time.Now().Add(time.Second), time.Hour: at.Add(time.Hour)} {
		ctx, cancel := s.Hurry(grace)
		end, limited := ctx.Deadline()
		cancel()
		require.True(t, limited)
		assert.False(t, end.Before(want))
	}
}
