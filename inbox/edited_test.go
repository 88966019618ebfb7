package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// shell runs a command in the inbox's directory, as a person would.
func shell(t testing.TB, box *inbox.Inbox, command string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir = box.Dir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// aside writes a new file and moves it over the inbox, as editors do.
func aside(content string) func(t testing.TB, box *inbox.Inbox) {
	return func(t testing.TB, box *inbox.Inbox) { replace(t, box.Path(), content) }
}

// inPlace truncates the inbox and writes it again, as other editors do.
func inPlace(content string) func(t testing.TB, box *inbox.Inbox) {
	return func(t testing.TB, box *inbox.Inbox) { rewrite(t, box.Path(), content) }
}

func byShell(line string) func(t testing.TB, box *inbox.Inbox) {
	return func(t testing.TB, box *inbox.Inbox) { shell(t, box, line) }
}

// Two of four entries were answered. As long as the file still begins with those two, they are not
// delivered again, whatever else happens to it.
func TestEditsBehindTheCursor(t *testing.T) {
	const content = "one\ntwo\nthree\nfour\n"
	for name, c := range map[string]struct {
		edit func(t testing.TB, box *inbox.Inbox)
		want string
	}{
		"a line taken out":                {byShell("sed -i /three/d inbox.jsonl"), "four"},
		"a letter mended":                 {byShell("sed -i s/thr/Thr/ inbox.jsonl"), "Three four"},
		"a line made longer":              {byShell("sed -i s/three/three_score/ inbox.jsonl"), "three_score four"},
		"a line put in":                   {byShell("sed -i '/three/i between' inbox.jsonl"), "between three four"},
		"all that waits taken out":        {byShell("sed -i 3,4d inbox.jsonl"), ""},
		"a line taken out, in place":      {inPlace("one\ntwo\nfour\n"), "four"},
		"a letter mended, in place":       {inPlace("one\ntwo\nThree\nfour\n"), "Three four"},
		"a line made longer, in place":    {inPlace("one\ntwo\nthree score\nfour\n"), "three_score four"},
		"more lines, in place":            {inPlace(content + "five\n"), "three four five"},
		"all taken out, in place":         {inPlace("one\ntwo\n"), ""},
		"another file":                    {aside(content), "three four"},
		"another file, longer":            {aside(content + "five\n"), "three four five"},
		"away and back":                   {byShell("git init -q && git add inbox.jsonl && git -c user.name=x -c user.email=x commit -qm x && git rm -q --cached inbox.jsonl && rm inbox.jsonl && git checkout -q HEAD -- inbox.jsonl"), "three four"},
		"copied away and back":            {byShell("cp -a inbox.jsonl x && rm inbox.jsonl && mv x inbox.jsonl"), "three four"},
		"all copied away, restored":       {byShell("mkdir ../backup && cp -r . ../backup && cp -r ../backup/. ."), "three four"},
		"all copied away, made anew":      {byShell("mkdir ../backup && cp -r . ../backup && rm -rf .[a-z]* * && cp -r ../backup/. ."), "three four"},
		"other mode":                      {byShell("chmod 640 inbox.jsonl"), "three four"},
		"touched":                         {byShell("touch inbox.jsonl"), "three four"},
		"another file, with the old time": {byShell("cp -p inbox.jsonl x && mv x inbox.jsonl"), "three four"},
	} {
		for _, inFlight := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", inFlight), func(t *testing.T) {
				if _, err := exec.LookPath("git"); err != nil && name == "away and back" {
					t.Skip("git is not installed")
				}
				path := filepath.Join(t.TempDir(), "work", "inbox.jsonl")
				require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
				write(t, path, content)
				box := open(t, path)
				turn(t, box)
				turn(t, box)
				if inFlight { // the third
					turn(t, box)
				} else {
					acknowledge(t, box, "done")
				}
				c.edit(t, box)
				var got []string
				want := strings.Fields(c.want)
				if inFlight {
					in(t, box, func(tx *inbox.Tx) {
						require.NotNil(t, tx.InFlight())
						require.Equal(t, "three", tx.InFlight().Text())
						require.NoError(t, tx.Acknowledge("done"))
					})
					if len(want) > 0 && want[0] == "three" {
						want = want[1:]
					}
				}
				for _, text := range drain(t, box) {
					got = append(got, strings.ReplaceAll(text, " ", "_"))
				}
				assert.Equal(t, append([]string{}, want...), append([]string{}, got...))
				assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
			})
		}
	}
}

// All settled lines decide together, not only the last. A line that another program put among the
// file's first lines is never skipped.
func TestEditsBeforeTheCursor(t *testing.T) {
	for name, line := range map[string]string{
		"a line far before, in another file":    "sed -i s/^3/x/ inbox.jsonl",
		"a line taken out, in another file":     "sed -i 3d inbox.jsonl",
		"a line put in, in another file":        "sed -i '1i urgent' inbox.jsonl",
		"a line and what waits":                 "sed s/^3/x/ inbox.jsonl | sed s/^39/y/ > x; cat x > inbox.jsonl",
		"a line taken out, and others appended": "sed -i 3d inbox.jsonl; cat inbox.jsonl > y; cat y >> inbox.jsonl",
	} {
		t.Run(name, func(t *testing.T) {
			box := half(t)
			shell(t, box, line)
			want := strings.Split(strings.TrimSuffix(read(t, box.Path()), "\n"), "\n")
			warnings := in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) })
			assert.Len(t, warnings, 1)
			assert.Equal(t, want, drain(t, box))
		})
	}
}

// Holes are no edit: the digest starts behind them.
func TestCompactedInboxIsEdited(t *testing.T) {
	for name, line := range map[string]string{
		"sparse": "cp --sparse=always inbox.jsonl x; mv x inbox.jsonl",
		"full":   "cat inbox.jsonl > x; mv x inbox.jsonl",
	} {
		t.Run(name, func(t *testing.T) {
			box := half(t)
			compact(t, box)
			turn(t, box)
			shell(t, box, line)
			assert.Equal(t, rest(22, 40), numbers(drain(t, box)))
		})
	}
}

// A journal without a digest relies on its anchor.
func TestEditUnderAnOlderJournal(t *testing.T) {
	box := half(t)
	var lines []string
	for l := range strings.Lines(written(read(t, beside(box, journal)))) {
		if strings.Contains(l, "followed") {
			lines = append(lines, l)
			continue
		}
		lines = append(lines, withoutMembers(t, strings.TrimSuffix(l, "\n"), "digest", "digest_start", "digest_end", "tail_start", "tail_sha256", "seen_young", "seen_place", "lock_mtime_ns"))
	}
	old := strings.Join(lines, "")
	write(t, beside(box, journal), filled(old, read(t, beside(box, journal))))
	shell(t, box, "sed -i s/^30/x/ inbox.jsonl")
	want := rest(21, 40)
	want[30-21] = "x"
	assert.Empty(t, in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) }))
	turn(t, box)
	shell(t, box, "sed -i s/^31/y/ inbox.jsonl")
	want[31-21] = "y"
	assert.Equal(t, want[1:], numbers(drain(t, box)))
}

// withoutMembers returns a line of the journal as an older version wrote it.
func withoutMembers(t testing.TB, line string, names ...string) string {
	t.Helper()
	_, body, _ := strings.Cut(line, " ")
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &members))
	for _, name := range names {
		delete(members, name)
	}
	b, err := json.Marshal(members)
	require.NoError(t, err)
	return sha256Hex(string(b))[:16] + " " + string(b) + "\n"
}

// A prompt is written each night and read at once: the kernel then sets both times equal, as touch does.
func TestSamePromptReadAtOnce(t *testing.T) {
	t.Parallel()
	const nights = 60
	box := newBox(t, "triage\n")
	require.Equal(t, []string{"triage"}, drain(t, box))
	done := 0
	for range nights {
		write(t, box.Path(), "triage\n")
		readRaw(t, box.Path())
		done += len(drain(t, box))
	}
	assert.Equal(t, nights, done)
}

// readRaw reads a file and asks nothing else about it, as a shell's `read` does.
func readRaw(t testing.TB, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	_, err = unix.Read(fd, make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
}

// The same with times that are certainly equal, and with the very time of the last commit, as
// within one tick of the clock.
func TestSamePromptWithinOneTick(t *testing.T) {
	for name, c := range map[string]struct{ before, access, change time.Duration }{
		"read in the tick of the write":     {0, time.Minute, time.Minute},
		"written in the tick of the commit": {time.Minute, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "triage\n")
			now := time.Now()
			require.NoError(t, os.Chtimes(box.Path(), now.Add(c.before), now.Add(c.before)))
			require.Equal(t, []string{"triage"}, drain(t, box))
			if !tellsPlaces(t, box.Path()) {
				t.Skip("this file system does not tell where a file's bytes are")
			}
			write(t, box.Path(), "triage\n")
			require.NoError(t, os.Chtimes(box.Path(), now.Add(c.access), now.Add(c.change)))
			assert.Equal(t, []string{"triage"}, drain(t, box))
			assert.Empty(t, drain(t, box))
		})
	}
}

// An edit before anything was read holds for good: a removed line, or one answered in its new
// place, does not come back with a kill or a power loss.
func TestEditBeforeAnythingWasRead(t *testing.T) {
	for edit, line := range map[string]string{
		"taken out":            "sed -i /first/d inbox.jsonl",
		"taken out, in place":  "sed /first/d inbox.jsonl > x; cat x > inbox.jsonl",
		"last one taken out":   "sed -i /third/d inbox.jsonl",
		"last one, in place":   "sed /third/d inbox.jsonl > x; cat x > inbox.jsonl",
		"replaced and grown":   "sed s/first/something.else.longer/ inbox.jsonl > x; cat x > inbox.jsonl",
		"truncated":            ": > inbox.jsonl",
		"truncated and filled": "echo '{\"prompt\":\"new\"}' > inbox.jsonl",
	} {
		for _, boots := range []bool{false, true} {
			for _, seen := range []string{"seen at once", "seen later"} {
				t.Run(fmt.Sprint(edit, " ", boots, " ", seen), func(t *testing.T) {
					reboot(t, "one")
					box := newBox(t, "")
					for _, text := range []string{"first", "second", "third"} {
						_, err := box.Append(context.Background(), inbox.Message{Text: text}, 0)
						require.NoError(t, err)
					}
					if seen == "seen later" {
						in(t, box, func(tx *inbox.Tx) {
							_, err := tx.Holds().Pause("", nil)
							require.NoError(t, err)
						})
					}
					shell(t, box, line)
					after := read(t, box.Path())
					if seen == "seen later" {
						in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Holds().Resume()) })
					}
					done := len(drain(t, box))
					assert.Equal(t, strings.Count(after, "\n"), done)
					forget(t, box)
					if boots {
						reboot(t, "two")
					}
					assert.Empty(t, drain(t, box))
					assert.Equal(t, after, read(t, box.Path()))
				})
			}
		}
	}
}

// The last sent line is edited before any other transaction has looked. A restart repairs the files
// from the journal, and must leave the edit alone.
func TestEditRightBehindASend(t *testing.T) {
	for edit, c := range map[string]struct {
		line string
		want []string
	}{
		"changed":            {"sed -i s/second/another/ inbox.jsonl", []string{"first", "another"}},
		"changed, in place":  {"sed s/second/another/ inbox.jsonl > x; cat x > inbox.jsonl", []string{"first", "another"}},
		"given another line": {"sed '$c third' inbox.jsonl > x; cat x > inbox.jsonl; echo fourth >> inbox.jsonl", []string{"first", "third", "fourth"}},
		"taken out":          {"sed -i /second/d inbox.jsonl", []string{"first"}},
		"taken out and grew": {"sed -i /second/d inbox.jsonl; printf 'x%0200d\\n' 0 >> inbox.jsonl", []string{"first", "x" + strings.Repeat("0", 200)}},
	} {
		for _, settled := range []string{"nothing", "an entry"} {
			t.Run(edit+", settled: "+settled, func(t *testing.T) {
				reboot(t, "one")
				box := newBox(t, "")
				send := func(text string) {
					_, err := box.Append(context.Background(), inbox.Message{Text: text}, 0)
					require.NoError(t, err)
				}
				if settled == "an entry" {
					send("before")
					require.Equal(t, []string{"before"}, drain(t, box))
				}
				send("first")
				send("second")
				shell(t, box, c.line)
				after := read(t, box.Path())
				in(t, box, func(*inbox.Tx) {})
				reboot(t, "two")
				assert.Equal(t, c.want, drain(t, box))
				assert.Equal(t, after, read(t, box.Path()))
			})
		}
	}
}

// tellsPlaces reports whether the file system tells where a file's bytes are.
func tellsPlaces(t testing.TB, path string) bool {
	t.Helper()
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	return f.Place() != ""
}
