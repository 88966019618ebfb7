package deadletter

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	testguild "heartbeat/internal/testing/guild"
)

const seedRecord = `{
  "sessionId": "ses-1",
  "status": "completed",
  "exitCode": 0,
  "transcript": []
}`

// below makes a working directory whose place for the babysitter's letters is there.
func below(t *testing.T) (cwd, dlq string) {
	cwd = t.TempDir()
	dlq = filepath.Join(cwd, ".nexus", "dlq")
	require.NoError(t, os.MkdirAll(dlq, 0o755))
	return cwd, dlq
}

func TestTheBabysittersLetters(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, _ := newBox(t)
	cwd, dlq := below(t)
	write(t, filepath.Join(dlq, "ses-1.json"), seedRecord)
	write(t, filepath.Join(dlq, "ses-2-running.json"), strings.Replace(seedRecord, "ses-1", "ses-2-running", 1))
	outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{cwd}, GuildURL: at(url)})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"record ses-1 sent", "record ses-2-running sent"}, whats(outcomes))
	s, _ := g.Session("ses-1")
	assert.Equal(t, 1, s.Record.Applied)
	names, err := os.ReadDir(dlq)
	require.NoError(t, err)
	assert.Empty(t, names)
}

// TestTheGuildsHome: there the babysitter's place is the folder beside the database.
func TestTheGuildsHome(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	cwd, dlq := below(t)
	write(t, filepath.Join(dlq, "ses-1.json"), seedRecord)
	write(t, filepath.Join(dlq, "ses-1-running.json"), `{"sessionId":"ses-1","startedAt":"x","provider":"p","cancelHandle":{"kind":"local-pgid","pgid":4711}}`)
	outcomes, err := Drain(t.Context(), Options{DB: filepath.Join(cwd, ".nexus", "nexus.db"), Cwds: []string{cwd}, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, []string{"running ses-1 sent", "record ses-1 sent"}, whats(outcomes))
	s, _ := g.Session("ses-1")
	assert.Equal(t, 1, s.Running.Applied)
	assert.Equal(t, 1, s.Record.Applied)
}

func TestARefusedLetterOfTheBabysitterIsMarkedBesideTheDatabase(t *testing.T) {
	_, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	cwd, dlq := below(t)
	write(t, filepath.Join(dlq, "ses-1.json"), strings.Replace(seedRecord, "completed", "no status", 1))
	for range 2 {
		outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{cwd}, GuildURL: at(url)})
		require.NoError(t, err)
		assert.Equal(t, []string{"record ses-1 refused"}, whats(outcomes))
	}
	names, err := os.ReadDir(dlq)
	require.NoError(t, err)
	assert.Len(t, names, 1)
	names, err = os.ReadDir(filepath.Join(box.Dir(), "refused"))
	require.NoError(t, err)
	assert.Len(t, names, 1)
}

func TestForgedLetters(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "ses-1.json")
	write(t, outside, seedRecord)
	tests := map[string]struct {
		forge func(t *testing.T, path string)
		want  string
	}{
		"a link":              {func(t *testing.T, path string) { require.NoError(t, os.Symlink(outside, path)) }, "symbolic link"},
		"a second name":       {func(t *testing.T, path string) { require.NoError(t, os.Link(outside, path)) }, "has 2 names"},
		"a pipe":              {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, "not a regular file"},
		"a folder":            {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		"another session":     {func(t *testing.T, path string) { write(t, path, strings.Replace(seedRecord, "ses-1", "ses-2", 1)) }, "named after another session"},
		"a way out":           {func(t *testing.T, path string) { write(t, path, strings.Replace(seedRecord, "ses-1", "../ses-1", 1)) }, "named after another session"},
		"two sessions":        {func(t *testing.T, path string) { write(t, path, `{"sessionId":"ses-1",`+seedRecord[1:]) }, "comes twice"},
		"half":                {func(t *testing.T, path string) { write(t, path, seedRecord[:60]) }, "it ends early"},
		"nothing":             {func(t *testing.T, path string) { write(t, path, "") }, "it ends early"},
		"a record of nothing": {func(t *testing.T, path string) { write(t, path, `{}`) }, "named after another session"},
		"far too much": {func(t *testing.T, path string) {
			write(t, path, seedRecord)
			require.NoError(t, os.Truncate(path, maxForeign+1))
		}, "over 256 MiB"},
		"a running report in its place": {func(t *testing.T, path string) {
			write(t, path, `{"sessionId":"ses-1","cancelHandle":{"kind":"local-pgid","pgid":1}}`)
		}, "its process group 1 is none that runs in"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, url := newGuild(t, testguild.Options{})
			db, _ := newBox(t)
			cwd, dlq := below(t)
			tc.forge(t, filepath.Join(dlq, "ses-1.json"))
			outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{cwd}, GuildURL: at(url)})
			require.NoError(t, err)
			require.Len(t, outcomes, 1)
			assert.Equal(t, Bad, outcomes[0].What)
			assert.Contains(t, outcomes[0].Why, tc.want)
			for _, id := range []string{"ses-1", "ses-2"} {
				_, known := g.Session(id)
				assert.False(t, known)
			}
		})
	}
}

func TestLettersBelowHaveALimitTogether(t *testing.T) {
	cwd, dlq := below(t)
	path := filepath.Join(dlq, "ses-1.json")
	write(t, path, seedRecord)
	l := Letter{Path: path, Cwd: cwd}
	require.NoError(t, l.read(int64(len(seedRecord))))
	require.ErrorContains(t, l.read(int64(len(seedRecord))-1), "are over 1024 MiB together")
}

func TestAForgedPlace(t *testing.T) {
	_, dlq := below(t)
	write(t, filepath.Join(dlq, "ses-1.json"), seedRecord)
	_, box := newBox(t)
	linked := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Dir(dlq), filepath.Join(linked, ".nexus")))
	letters, _, err := box.ListBelow(linked)
	require.NoError(t, err)
	assert.Empty(t, letters)

	linked = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(linked, ".nexus"), 0o700))
	require.NoError(t, os.Symlink(dlq, filepath.Join(linked, ".nexus", "dlq")))
	letters, _, err = box.ListBelow(linked)
	require.Error(t, err)
	assert.Empty(t, letters)

	pipe := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(pipe, ".nexus"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(pipe, ".nexus", "dlq"), 0o600))
	_, _, err = box.ListBelow(pipe)
	require.Error(t, err)
}

func TestASessionOfOursHasNoLetterBelow(t *testing.T) {
	_, url := newGuild(t, testguild.Options{})
	db, _ := newBox(t)
	cwd, dlq := below(t)
	write(t, filepath.Join(dlq, "ses-1.json"), seedRecord)
	outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{cwd}, GuildURL: at(url), Hosted: func(id string) bool { return id == "ses-1" }})
	require.NoError(t, err)
	assert.Equal(t, []string{"record ses-1 bad"}, whats(outcomes))
	assert.FileExists(t, filepath.Join(dlq, "ses-1.json"))
}

// TestARunningReportBelow is sent if its process group runs there, and says no more than
// what was understood.
func TestARunningReportBelow(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	g, url := newGuild(t, testguild.Options{})
	db, _ := newBox(t)
	cwd, dlq := below(t)
	start := func(dir string) int {
		cmd := exec.Command("cat")
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			require.NoError(t, in.Close())
			require.NoError(t, cmd.Wait())
		})
		return cmd.Process.Pid
	}
	letter := func(id string, pgid int) {
		text, err := json.Marshal(map[string]any{
			"sessionId": id, "startedAt": "x", "provider": "claude-code", "socket": "/tmp/x",
			"cancelHandle": map[string]any{"kind": "local-pgid", "pgid": pgid, "pid": 1}, "more": "x",
		})
		require.NoError(t, err)
		write(t, filepath.Join(dlq, id+"-running.json"), string(text))
	}
	here, there := start(cwd), start(t.TempDir())
	letter("ses-1", here)
	letter("ses-2", there)
	letter("ses-3", 0)
	letter("ses-4", -here)
	outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{cwd}, GuildURL: at(url)})
	require.NoError(t, err)
	what := map[string]string{}
	for _, o := range outcomes {
		what[o.SessionID] = o.What
	}
	assert.Equal(t, map[string]string{"ses-1": Sent, "ses-2": Bad, "ses-3": Bad, "ses-4": Bad}, what)
	s, _ := g.Session("ses-1")
	assert.Equal(t, here, s.PGID)
}

// FuzzLetter: whatever an agent writes, what is sent is about the session that the file
// is named after, and no process is named that was not shown.
func FuzzLetter(f *testing.F) {
	f.Add("ses-1.json", seedRecord)
	f.Add("ses-1-running.json", `{"sessionId":"ses-1","startedAt":"x","provider":"p","cancelHandle":{"kind":"local-pgid","pgid":4711}}`)
	f.Add("ses-1.json", `{"sessionId":"ses-1","status":"failed","error":"e","transcript":[{"a":"}"}]}`)
	f.Add("a.json", `{"session\u0049d":"a","status":""}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		name = strings.Map(func(r rune) rune {
			if r == '/' || r == 0 {
				return '_'
			}
			return r
		}, name)
		if len(name) > 200 {
			return
		}
		dir := t.TempDir()
		l := Letter{Path: filepath.Join(dir, name+".json"), Cwd: dir}
		if os.WriteFile(l.Path, []byte(text), 0o600) != nil {
			return // no name of a file
		}
		if l.read(maxForeignTotal) != nil {
			return
		}
		if l.Kind == Running {
			t.Fatalf("nothing runs in %s: %s", dir, text)
		}
		require.Equal(t, name, l.SessionID)
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) == nil {
			var id string
			require.NoError(t, json.Unmarshal(members["sessionId"], &id))
			require.Equal(t, id, l.SessionID)
		}
	})
}
