package client

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
)

// The victims, and the moments of a session with two prompts and a tool at which they
// are killed.
const (
	theHost   = "host"
	theClient = "client"
	theGuild  = "guild"

	atStart  = "up"       // start has returned
	atModel  = "asked"    // the model has the first prompt
	atTool   = "tool"     // the guild has a call of a tool, and has not answered
	atSecond = "second"   // the first prompt was answered, the model has the second
	atResult = "result"   // the client has printed its result
	atReport = "reported" // the guild has applied the terminal report, and has not answered
)

// slain is what becomes of a session with a victim at a moment.
type slain struct {
	victim, moment string
	status         string
	answered       int // at least so many prompts
}

// A kill loses no report, and never makes completed of what was not answered.
func TestHostedKills(t *testing.T) {
	for _, c := range []slain{
		{theHost, atStart, "failed", 0},
		{theHost, atModel, "failed", 0},
		{theHost, atTool, "failed", 0},
		{theHost, atSecond, "failed", 1},
		{theHost, atResult, "completed", 2},
		{theHost, atReport, "completed", 2},
		{theClient, atStart, "failed", 0},
		{theClient, atModel, "failed", 0},
		{theClient, atTool, "failed", 0},
		{theClient, atSecond, "failed", 1},
		{theClient, atResult, "completed", 2},
		{theGuild, atStart, "completed", 2},
		{theGuild, atModel, "completed", 2},
		{theGuild, atTool, "completed", 2},
		{theGuild, atSecond, "completed", 2},
		{theGuild, atResult, "completed", 2},
		{theGuild, atReport, "completed", 2},
	} {
		t.Run(c.victim+" "+c.moment, func(t *testing.T) {
			t.Parallel()
			killed(t, c)
		})
	}
}

func killed(t *testing.T, c slain) {
	var h *house
	var once sync.Once
	up, struck := make(chan up, 1), make(chan struct{})
	kill := func() {
		once.Do(func() {
			defer close(struck)
			u := <-up
			switch c.victim {
			case theHost:
				err := syscall.Kill(u.PID, syscall.SIGKILL)
				if c.moment != atResult || !errors.Is(err, syscall.ESRCH) { // else it has just ended
					assert.NoError(t, err)
				}
			case theClient:
				if its := h.state("ses-kill").Client; its != nil { // else it has just ended
					_ = syscall.Kill(its.PID, syscall.SIGKILL)
				}
			case theGuild:
				h.guild.Kill()
				assert.NoError(t, h.guild.Start())
			}
		})
	}
	h = newHouse(t, func(r model.Request) model.Reply {
		if c.moment == atStart {
			select {
			case <-struck:
			case <-t.Context().Done():
			}
		}
		switch tag := lastTag(r); {
		case tag == "[e1]" && c.moment == atModel, tag == "[e2]" && c.moment == atSecond:
			kill()
		case tag == "[e1]":
			return model.Tool(guildTools+"signal", map[string]any{"q": "one"})
		}
		return model.Text("done")
	})
	config := h.seed("ses-kill", "first [e1]", guildOf...)
	switch c.moment {
	case atTool:
		require.NoError(t, h.guild.Break(guild.Fault{On: "tool", Step: guild.WhenApplied, Do: guild.Hang, Times: -1}))
	case atReport:
		require.NoError(t, h.guild.Break(guild.Fault{On: "record", Step: guild.WhenApplied, Do: guild.Hang}))
	}
	u := h.start(config)
	h.send("ses-kill", "second [e2]")
	up <- u
	ctx := minutes(t)
	switch c.moment {
	case atStart:
		kill()
	case atTool:
		h.until(ctx, "the tool was called", func() bool { return h.known("ses-kill").Calls["signal"] > 0 })
		kill()
	case atResult:
		h.follow(ctx, "ses-kill", "result")
		kill()
	case atReport:
		h.until(ctx, "the report was applied", func() bool { return h.known("ses-kill").Record.Applied > 0 })
		kill()
	}
	s := h.await(ctx, "ses-kill")
	assert.Equal(t, 1, s.Record.Applied)
	assert.Equal(t, c.status, s.Status)
	h.counts(s, c)
	h.agrees(s)
	assert.Empty(t, h.letters())
	h.isClean("ses-kill")
}

// counts checks the fates of a session's two prompts.
func (h *house) counts(s guild.Session, c slain) {
	h.t.Helper()
	e := h.state(s.ID).Entries
	assert.Equal(h.t, 2, e.Answered+e.Queued+e.DeadLettered, "%+v", e)
	assert.Zero(h.t, e.InFlight)
	assert.GreaterOrEqual(h.t, e.Answered, c.answered)
	assert.Equal(h.t, s.Status == "completed", e.Answered == 2, "%s with %+v", s.Status, e)
	each, _ := reported(s, "entries").(map[string]any)
	assert.Equal(h.t, float64(e.Answered), each["answered"])
}

// follow reads a session's messages from the first on until there is one of a type.
func (h *house) follow(ctx context.Context, id, until string) (all []stream.Stored) {
	h.t.Helper()
	f := h.folder(id)
	db := store.In(folder.Root(f.DB), "")
	defer func() { require.NoError(h.t, db.Close()) }()
	over := func() (int64, bool) { s := h.state(id); return s.Messages, s.Status.Ended() }
	for m, err := range stream.ReadTranscript(ctx, stream.TranscriptOptions{DB: db, Guild: f.DB, SessionID: id}, 1, over) {
		require.NoError(h.t, err)
		if all = append(all, m); m.Type == until {
			return all
		}
	}
	require.Fail(h.t, "the session ended without a message of the type "+until)
	return nil
}
