package deadletter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/guild"
)

func TestARecordGoesOnceTheGuildHasIt(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(body)
		_, _ = io.WriteString(w, `{"ok":true,"sessionId":"ses-1"}`)
	}))
	defer server.Close()
	box := Beside(filepath.Join(t.TempDir(), "nexus.db"))
	require.NoError(t, box.PutRecord(&guild.Record{SessionID: "ses-1", Status: guild.Completed, Transcript: func(w io.Writer) error {
		_, err := io.WriteString(w, `[{"type":"user"}]`)
		return err
	}}))
	client, err := guild.New(guild.Options{URL: server.URL, SessionID: "ses-1"})
	require.NoError(t, err)
	answer, err := box.Deliver(t.Context(), client, Record, "ses-1")
	require.NoError(t, err)
	assert.Equal(t, guild.Completed, answer.As)
	assert.Equal(t, `/api/session/record {"sessionId":"ses-1","status":"completed","exitCode":0,"transcript":[{"type":"user"}]}`, got)
	letters, _, err := box.List()
	require.NoError(t, err)
	assert.Empty(t, letters)
}
