package days

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func resultLine(i, attempt int) string {
	return fmt.Sprintf(`{"id":%q,"attempt":%d,"reply":%q}`, id(i), attempt, answer(prompt(id(i)))) + "\n"
}

// TestCheck lets a day of three entries and one kill end in different ways.
func TestCheck(t *testing.T) {
	whole := resultLine(0, 1) + resultLine(1, 2) + resultLine(2, 1)
	again := `{"event":"redelivered"}` + "\n"
	for name, c := range map[string]struct {
		results, events, dead, inFlight, said, want string
	}{
		"as promised":              {results: whole, events: `{"event":"session started"}` + "\n" + again},
		"never arrived":            {results: strings.Replace(whole, ":2,", ":1,", 1), events: again},
		"one lost":                 {results: resultLine(0, 1) + resultLine(2, 1), want: `where that of "entry-00000001" belongs`},
		"the last lost":            {results: resultLine(0, 1) + resultLine(1, 1), want: "2 results for 3 entries"},
		"twice":                    {results: resultLine(0, 1) + whole, want: "belongs"},
		"another's answer":         {results: strings.Replace(whole, "did entry-00000001", "did entry-00000002", 1), want: "belongs"},
		"torn":                     {results: whole[:len(whole)-5], want: "line 3"},
		"a dead letter":            {results: whole, events: again, dead: `{"entry_id":"x"}`, want: `became a dead letter: {"entry_id":"x"}`},
		"in flight":                {results: whole, events: again, inFlight: "{}", want: "still in flight"},
		"more often than killed":   {results: whole, events: again + again, want: "2 redeliveries for 1 kills"},
		"an attempt from nowhere":  {results: whole, want: "the results tell of 1 redeliveries, and the events of 0"},
		"a hook that had to speak": {results: whole, events: again, said: "oh", want: "complained, 1 times, first: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Day{Dir: t.TempDir(), Entries: 3, report: Report{Kills: 1}}
			require.NoError(t, os.Mkdir(filepath.Dir(d.Inbox()), 0o700))
			for file, content := range map[string]string{
				".results.jsonl": c.results, ".events.jsonl": c.events, ".dead-letter.jsonl": c.dead, ".in-flight": c.inFlight,
			} {
				if content != "" {
					require.NoError(t, os.WriteFile(d.file(file), []byte(content), 0o600))
				}
			}
			if c.said != "" {
				d.said = []string{c.said}
			}
			err := d.check()
			if c.want == "" {
				require.NoError(t, err)
				assert.Equal(t, 1, d.report.Redeliveries)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// Only a kill is a kill: whatever else ends a session ends the day.
func TestKilled(t *testing.T) {
	killed := exec.Command("sh", "-c", "kill -9 $$").Run()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"killed":               {errors.Join(fmt.Errorf("run: %w", killed), nil), true},
		"let go":               {nil, false},
		"failed":               {exec.Command("sh", "-c", "exit 1").Run(), false},
		"terminated":           {exec.Command("sh", "-c", "kill -15 $$").Run(), false},
		"and failed besides":   {errors.Join(killed, errors.New("SessionEnd failed")), false},
		"something else wrong": {errors.New("no decision"), false},
	} {
		k := killer{due: true}
		assert.Equal(t, c.want, k.killed(c.err), name)
		assert.Equal(t, c.want, !k.due, name)
	}
}

func TestSpaceLeavesOutHoles(t *testing.T) {
	dir := t.TempDir()
	empty, err := Space(dir)
	require.NoError(t, err)
	f, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 10<<20)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	full, err := Space(dir)
	require.NoError(t, err)
	assert.Greater(t, full, empty)
	assert.Less(t, full, int64(5<<20))
	_, err = Space(filepath.Join(dir, "missing"))
	require.ErrorContains(t, err, "missing")
}
