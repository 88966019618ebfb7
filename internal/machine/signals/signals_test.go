package signals_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine/signals"
	"heartbeat/internal/testing/script"
)

func TestMain(m *testing.M) { os.Exit(script.Run(m)) }

func send(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(syscall.Getpid(), sig))
}

// TestEverybodyIsTold of a signal, also who asks long after it, and the first one
// is the reason.
func TestEverybodyIsTold(t *testing.T) {
	s := signals.Catch()
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

// TestSpare has a first SIGTERM ask for no more than a warm stop; the next signal is the
// first one that ends, and the reason stays.
func TestSpare(t *testing.T) {
	s := signals.Catch()
	defer s.Stop()
	s.Spare()
	send(t, syscall.SIGTERM)
	<-s.Warm()
	hurry, cancel := s.Hurry(time.Hour)
	defer cancel()
	end, limited := hurry.Deadline()
	require.True(t, limited)
	assert.Greater(t, time.Until(end), 50*time.Minute)
	select {
	case <-s.First():
		t.Fatal("it was spared")
	default:
	}
	send(t, syscall.SIGTERM)
	<-s.First()
	send(t, syscall.SIGHUP)
	<-s.Second()
	<-hurry.Done()
	got, at := s.Signal()
	assert.Equal(t, syscall.SIGTERM, got)
	assert.False(t, at.IsZero())
}

// TestNothingElseIsSpared: only SIGTERM is an order that can wait.
func TestNothingElseIsSpared(t *testing.T) {
	s := signals.Catch()
	defer s.Stop()
	s.Spare()
	send(t, syscall.SIGINT)
	<-s.First()
	send(t, syscall.SIGTERM)
	<-s.Second()
	select {
	case <-s.Warm():
		t.Fatal("it was too late for that")
	default:
	}
}

// TestHurry leaves a second, however short the grace.
func TestHurry(t *testing.T) {
	s := signals.Catch()
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
