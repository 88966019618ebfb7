package deadletter

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/guild"
	testguild "heartbeat/internal/testing/guild"
)

func TestALetterGoesOnceTheGuildHasIt(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	_, box := newBox(t)
	client := newClient(t, url, "ses-1", nil)
	require.NoError(t, box.PutRunning(runningOf("ses-1")))
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	text, err := os.ReadFile(filepath.Join(box.Dir(), "ses-1.json"))
	require.NoError(t, err)
	assert.Equal(t, `{"sessionId":"ses-1","status":"completed","exitCode":0,"transcript":[{"type":"user"}]}`, string(text))
	info, err := os.Stat(box.Path(Running, "ses-1"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	_, err = box.Deliver(t.Context(), client, Running, "ses-1")
	require.NoError(t, err)
	answer, err := box.Deliver(t.Context(), client, Record, "ses-1")
	require.NoError(t, err)
	assert.Equal(t, guild.Completed, answer.As)
	s, _ := g.Session("ses-1")
	assert.Equal(t, 1, s.Running.Applied)
	assert.Equal(t, 1, s.Record.Applied)
	assert.Equal(t, 1, s.Messages)
	letters, _, err := box.List()
	require.NoError(t, err)
	assert.Empty(t, letters)
	_, err = box.Deliver(t.Context(), client, Record, "ses-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestALetterStaysWithoutItsGuild(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 503, Times: -1})
	_, box := newBox(t)
	_, err := box.ReportRunning(t.Context(), newClient(t, url, "ses-1", &testguild.Clock{}), runningOf("ses-1"))
	var away *guild.Unreachable
	require.ErrorAs(t, err, &away)
	letters, _, err := box.List()
	require.NoError(t, err)
	require.Len(t, letters, 1)
	assert.Equal(t, Running, letters[0].Kind)
	assert.Empty(t, letters[0].Problem)
	assert.Nil(t, letters[0].Refused)
}

func TestALetterThatIsRefusedIsMarked(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 403})
	_, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	_, err := box.Deliver(t.Context(), newClient(t, url, "ses-1", nil), Record, "ses-1")
	var refused *guild.Refused
	require.ErrorAs(t, err, &refused)
	letters, _, err := box.List()
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.NotNil(t, letters[0].Refused)
	assert.Equal(t, 403, letters[0].Refused.Status)

	require.NoError(t, box.Remove(Record, "ses-1"))
	marks, err := os.ReadDir(filepath.Join(box.Dir(), "refused"))
	require.NoError(t, err)
	assert.Empty(t, marks)
}

func TestARecordIsKeptWithoutItsTranscript(t *testing.T) {
	_, box := newBox(t)
	r := recordOf("ses-1")
	r.Transcript = func(w io.Writer) error {
		_, err := io.WriteString(w, `[{"type":`)
		require.NoError(t, err)
		return errors.New("the database is broken")
	}
	require.NoError(t, box.PutRecord(r))
	text, err := os.ReadFile(box.Path(Record, "ses-1"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"sessionId":"ses-1","status":"completed","exitCode":0,"transcript":[],
		"transcriptMissing":"keep the report of session ses-1: write the transcript of session ses-1: the database is broken"}`, string(text))
}

func TestAnIDThatIsNoName(t *testing.T) {
	_, box := newBox(t)
	for _, id := range []string{"", "../x", ".x", "a/b", "a b"} {
		require.ErrorContains(t, box.PutRunning(runningOf(id)), "the id must ", "%q", id)
	}
}

func TestAFullDiskDoesNotKeepTheRunningReport(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	box := Beside(filepath.Join(t.TempDir(), "missing", "nexus.db"))
	_, err := box.ReportRunning(t.Context(), newClient(t, url, "ses-1", nil), runningOf("ses-1"))
	require.NoError(t, err)
	s, _ := g.Session("ses-1")
	assert.Equal(t, 1, s.Running.Applied)
}

// TestTheGuildIsKilledAtEachStep of each report, and comes back while the host waits.
func TestTheGuildIsKilledAtEachStep(t *testing.T) {
	p, err := testguild.Launch(testguild.Options{State: filepath.Join(t.TempDir(), "state")})
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill() })
	_, box := newBox(t)
	for _, on := range []Kind{Running, Record} {
		for _, step := range testguild.Steps {
			id := "ses-" + string(on) + "-" + step
			require.NoError(t, p.Break(testguild.Fault{On: string(on), Step: step, Do: testguild.Die}))
			clock := &testguild.Clock{Woken: func(n int) {
				if n == 2 {
					p.Wait()
					require.NoError(t, p.Start())
				}
			}}
			client := newClient(t, p.URL(), id, clock)
			_, err := box.ReportRunning(t.Context(), client, runningOf(id))
			require.NoError(t, err, id)
			require.NoError(t, box.PutRecord(recordOf(id)))
			_, err = box.Deliver(t.Context(), client, Record, id)
			require.NoError(t, err, id)
			assert.Len(t, clock.Seconds(), 2, id)
			sessions, err := p.Sessions()
			require.NoError(t, err)
			assert.Equal(t, 1, sessions[id].Running.Applied, id)
			assert.Equal(t, 1, sessions[id].Record.Applied, id)
		}
	}
	letters, _, err := box.List()
	require.NoError(t, err)
	assert.Empty(t, letters)
}
