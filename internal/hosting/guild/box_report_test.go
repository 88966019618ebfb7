package guild

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	testguild "heartbeat/internal/testing/guild"
)

const seedRecord = `{
  "sessionId": "ses-1",
  "status": "completed",
  "exitCode": 0,
  "transcript": []
}`

// TestTheBabysittersLetters: those of a session that worked in the guild's home are
// beside the database.
func TestTheBabysittersLetters(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	write(t, filepath.Join(b.dir, "ses-1.json"), seedRecord)
	write(t, filepath.Join(b.dir, "ses-1-running.json"), `{"sessionId":"ses-1","startedAt":"x","provider":"p","cancelHandle":{"kind":"local-pgid","pgid":4711}}`)
	assert.Equal(t, []string{"running ses-1 sent", "record ses-1 sent"}, b.drain(DrainOptions{GuildURL: at(url)}))
	s, _ := g.Session("ses-1")
	assert.Equal(t, 1, s.Running.Applied)
	assert.Equal(t, 1, s.Record.Applied)
	b.nothingLeft()
}

func TestForgedLetters(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "ses-1.json")
	write(t, outside, seedRecord)
	tests := map[string]struct {
		forge func(t *testing.T, path string)
		want  string
	}{
		"a link":              {func(t *testing.T, path string) { require.NoError(t, os.Symlink(outside, path)) }, "symbolic link"},
		"a pipe":              {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, "not a regular file"},
		"a folder":            {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		"another session":     {func(t *testing.T, path string) { write(t, path, strings.Replace(seedRecord, "ses-1", "ses-2", 1)) }, "its name is not that session's"},
		"a way out":           {func(t *testing.T, path string) { write(t, path, strings.Replace(seedRecord, "ses-1", "../ses-1", 1)) }, "its name is not that session's"},
		"half":                {func(t *testing.T, path string) { write(t, path, seedRecord[:60]) }, "it is no report"},
		"nothing":             {func(t *testing.T, path string) { write(t, path, "") }, "it is no report"},
		"a record of nothing": {func(t *testing.T, path string) { write(t, path, `{}`) }, "its name is not that session's"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, url := emptyGuild(t, testguild.Options{})
			b := newBox(t)
			require.NoError(t, os.Mkdir(b.dir, 0o700))
			tc.forge(t, b.Path("ses-1"))
			outcomes, err := Drain(t.Context(), DrainOptions{DB: b.guild, GuildURL: at(url)})
			require.NoError(t, err)
			require.Len(t, outcomes, 1)
			assert.Equal(t, ReportBad, outcomes[0].What)
			assert.Contains(t, outcomes[0].Why, tc.want)
			for _, id := range []string{"ses-1", "ses-2"} {
				_, known := g.Session(id)
				assert.False(t, known)
			}
		})
	}
}

// FuzzReport: whatever is written there, what is sent is about the session that the file
// is named after.
func FuzzReport(f *testing.F) {
	f.Add("ses-1.json", seedRecord)
	f.Add("ses-1-running.json", `{"sessionId":"ses-1","startedAt":"x","provider":"p","cancelHandle":{"kind":"local-pgid","pgid":4711}}`)
	f.Add("ses-1.json", `{"sessionId":"ses-1","status":"failed","error":"e","transcript":[{"a":"}"}]}`)
	f.Add("a.json", `{"session\u0049d":"a","status":""}`)
	f.Add("a.json", `{"sessionId":"a","sessionId":"b","status":"failed"}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		name = strings.Map(func(r rune) rune {
			if r == '/' || r == 0 {
				return '_'
			}
			return r
		}, name)
		db := filepath.Join(t.TempDir(), "nexus.db")
		require.NoError(t, folder.MakeRoot(db))
		b := OutboxBeside(db)
		defer b.Close()
		require.NoError(t, os.Mkdir(b.dir, 0o700))
		if len(name) > 200 || os.WriteFile(filepath.Join(b.dir, name+".json"), []byte(text), 0o600) != nil {
			return // no name of a file
		}
		_, err := b.Adopt(t.Context())
		require.NoError(t, err)
		all, err := b.db.Unsent(t.Context())
		require.NoError(t, err)
		for _, r := range all {
			if r.Kind == store.Running {
				name = strings.TrimSuffix(name, "-running")
			}
			require.Equal(t, name, r.Session)
			whole, found, err := b.db.Report(t.Context(), r.Session, r.Kind)
			require.NoError(t, err)
			require.True(t, found)
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(whole.Head), &members))
			if own, is := members["sessionId"]; is { // it may be spelled in capitals
				var id string
				require.NoError(t, json.Unmarshal(own, &id))
				require.Equal(t, id, r.Session)
			}
		}
	})
}
