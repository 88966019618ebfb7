package settings_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

// metered is a wiring of one event and the meter.
func metered() settings.Wiring {
	w := stopOnly()
	w.Meter = &settings.Meter{Command: "/abs/heartbeat-meter"}
	return w
}

// statusOf returns a file with that status line.
func statusOf(t testing.TB, command string, members ...string) string {
	t.Helper()
	text, err := json.Marshal(command)
	require.NoError(t, err)
	return `{"statusLine":{"type":"command","command":` + string(text) + strings.Join(members, "") + `}}`
}

func lineOf(t testing.TB, file string) string {
	t.Helper()
	content, err := settings.Look([]byte(file), "")
	require.NoError(t, err)
	require.NotNil(t, content.StatusLine)
	return content.StatusLine.Command
}

func TestMeterGoesBeforeThePersonsLine(t *testing.T) {
	const ours = "/abs/heartbeat-meter --inbox /x/inbox.jsonl"
	tests := []struct{ name, line, want string }{
		{"a path", "~/line.sh", ours + " --then '~/line.sh'"},
		{"quotes", `echo 'a' "b"`, ours + ` --then 'echo '\''a'\'' "b"'`},
		{"a meter from another release's path", "/old/heartbeat-meter --inbox /x/inbox.jsonl --then 'l'", ours + " --then 'l'"},
		{"a meter, quoted otherwise", "'/abs/heartbeat-meter' --inbox='/x/inbox.jsonl' --then='l'", ours + " --then 'l'"},
		{"the meter itself", ours, ours},
		{"a meter with another's flag", ours + " --verbose", ours},
		{"two of them", ours + " --then '" + ours + "'", ours},
		{"another inbox", "/abs/heartbeat-meter --inbox /y.jsonl", ours + " --then '/abs/heartbeat-meter --inbox /y.jsonl'"},
		{"between others", "/a/heartbeat-meter --inbox /y.jsonl --then '/old/heartbeat-meter --inbox /x/inbox.jsonl'", "/a/heartbeat-meter --inbox /y.jsonl --then '" + ours + "'"},
		{"by hand", "heartbeat-meter --inbox /x/inbox.jsonl | tee log", "heartbeat-meter --inbox /x/inbox.jsonl | tee log"},
		{"by hand, two lines", "heartbeat-meter --inbox /x/inbox.jsonl # first\nline.sh", "heartbeat-meter --inbox /x/inbox.jsonl # first\nline.sh"},
		{"by hand for another inbox", "heartbeat-meter --inbox /y.jsonl; a", ours + " --then 'heartbeat-meter --inbox /y.jsonl; a'"},
		{"a relative inbox", "heartbeat-meter --inbox y.jsonl", ours + " --then 'heartbeat-meter --inbox y.jsonl'"},
		{"only its name", "tail /var/log/heartbeat-meter", ours + " --then 'tail /var/log/heartbeat-meter'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			y := install(t, statusOf(t, test.line), metered())
			assert.Equal(t, test.want, lineOf(t, y))
			assert.Equal(t, y, install(t, y, metered()))
		})
	}
}

// The meter's line by its new name, over the old one, and back.
func TestMeterByItsNewName(t *testing.T) {
	w := metered()
	w.Meter = &settings.Meter{Command: "/abs/heartbeat-stop"}
	for _, x := range []string{`{"a":1}`, statusOf(t, "mine")} {
		y := install(t, install(t, x, metered()), w)
		assert.True(t, strings.HasPrefix(lineOf(t, y), "/abs/heartbeat-stop meter --inbox /x/inbox.jsonl"), y)
		assert.NotContains(t, y, "heartbeat-meter")
		content, err := settings.Look([]byte(y), "")
		require.NoError(t, err)
		assert.Equal(t, &settings.MeterUse{Command: "/abs/heartbeat-stop", Inbox: inbox, Plain: true}, content.StatusLine.Meter(inbox))
		assert.Len(t, content.Hooks, 1)
		assert.Equal(t, install(t, x, metered()), install(t, y, metered()))
		assert.Equal(t, x, uninstall(t, y, metered()))
	}
}

func TestMeterKeepsWhatAPersonChangesInBetween(t *testing.T) {
	x := statusOf(t, "old", `,"padding":2`)
	y := install(t, x, metered())
	tests := []struct{ name, old, edit, want string }{
		{"the line behind ours", "'old'", "'new'", statusOf(t, "new", `,"padding":2`)},
		{"without its quotes", "'old'", "new", statusOf(t, "new", `,"padding":2`)},
		{"the whole line", "/abs/heartbeat-meter --inbox /x/inbox.jsonl --then 'old'", "mine", statusOf(t, "mine", `,"padding":2`, `,"refreshInterval":5`)},
		{"our line made a part of theirs", "'old'", "'old' | head", statusOf(t, "/abs/heartbeat-meter --inbox /x/inbox.jsonl --then 'old' | head", `,"padding":2`, `,"refreshInterval":5`)},
		{"the interval", `"refreshInterval":5`, `"refreshInterval":60`, statusOf(t, "old", `,"padding":2`, `,"refreshInterval":60`)},
		{"the padding", `"padding":2`, `"padding":0`, statusOf(t, "old", `,"padding":0`)},
		{"what we added", `,"refreshInterval":5`, ``, x},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Contains(t, y, test.old)
			assert.Equal(t, test.want, uninstall(t, strings.Replace(y, test.old, test.edit, 1), metered()))
		})
	}
}

func TestUninstallTakesOutAMeterWhoseHooksAreGone(t *testing.T) {
	y := strings.Replace(install(t, `{"a":1}`, metered()), `"hooks":{"Stop":[`+entry+`]},`, "", 1)
	assert.Equal(t, `{"a":1}`, uninstall(t, y, metered()))
}

func TestMeterLeavesALineThatWouldBeTooLong(t *testing.T) {
	for _, line := range []string{strings.Repeat("x", 119_990), strings.Repeat("'", 40_000), strings.Repeat("y", 2<<20)} {
		x := statusOf(t, line)
		y := install(t, x, metered())
		assert.Equal(t, line, lineOf(t, y))
		assert.Equal(t, x, uninstall(t, y, metered()))
		w := metered()
		w.Meter.Below = belowOf(t, x)
		assert.NotContains(t, install(t, "{}", w), "statusLine", "the line of another file is not hidden")
	}
}

func TestManyInboxesInOneFile(t *testing.T) {
	x := statusOf(t, "echo 'mine'")
	files := []string{x}
	var all []settings.Wiring
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w := metered()
		w.Args = []string{"--inbox", "/" + name + "/inbox.jsonl"}
		all = append(all, w)
		files = append(files, install(t, files[len(files)-1], w))
	}
	y := files[len(files)-1]
	for _, i := range []int{2, 0, 4, 1, 3} {
		y = uninstall(t, y, all[i])
	}
	assert.Equal(t, x, y)
}

// The line that is written does in a shell what the person's own line does.
func TestThePersonsLineRunsAsBefore(t *testing.T) {
	dir := t.TempDir()
	meter := filepath.Join(dir, "it's a \"dir\"", "heartbeat-meter")
	require.NoError(t, os.Mkdir(filepath.Dir(meter), 0o700))
	const script = "#!/bin/sh\nshift 2\n[ \"$1\" != --then ] || exec /bin/sh -c \"$2\"\n"
	require.NoError(t, os.WriteFile(meter, []byte(script), 0o700))
	lines := []string{
		"echo plain", "cat", `printf '%s\n' "$HOME" 100%`, "echo a\necho b", "echo `echo $((1+1))` # c", `echo 'it'\''s' \\ "\"" \$X`,
		"", "exit 3", "echo é \U0001f600", "x='" + strings.Repeat("ab ", 33_000) + "'; echo ${#x}", "# only a comment",
	}
	for _, line := range lines {
		file := statusOf(t, line)
		for _, inbox := range []string{"/x/inbox.jsonl", "/a b/$HOME/'q'/in\nbox.jsonl"} {
			w := metered()
			w.Args, w.Meter.Command = []string{"--inbox", inbox}, meter
			file = install(t, file, w)
			assert.Equal(t, shell(t, line), shell(t, lineOf(t, file)), "%.100q", line)
		}
	}
}

// shell returns what a line prints, and how it ends.
func shell(t testing.TB, line string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Stdin = strings.NewReader("{}")
	out, _ := cmd.CombinedOutput()
	return string(out) + cmd.ProcessState.String()
}

func TestMeterShowsTheLineOfAnotherFile(t *testing.T) {
	w := metered()
	w.Meter.Below = belowOf(t, statusOf(t, "theirs", `,"padding":7`, `,"refreshInterval":30`, `,"x":[1]`))
	y := install(t, `{"a":1}`, w)
	assert.Equal(t, "/abs/heartbeat-meter --inbox /x/inbox.jsonl --then 'theirs' # shows the status line of another settings file", lineOf(t, y))
	assert.Contains(t, y, `"padding":7,"refreshInterval":30}`)
	assert.Equal(t, `{"a":1}`, uninstall(t, y, metered()))

	changed := metered()
	changed.Meter.Below = belowOf(t, statusOf(t, "other"))
	assert.Contains(t, lineOf(t, install(t, y, changed)), "--then 'other' #")
	assert.Equal(t, "/abs/heartbeat-meter --inbox /x/inbox.jsonl", lineOf(t, install(t, y, metered())))

	own := install(t, statusOf(t, "own"), w)
	assert.NotContains(t, own, "theirs", "the file's own line counts")

	w.Meter.Below = belowOf(t, install(t, statusOf(t, "theirs"), metered()))
	assert.Contains(t, lineOf(t, install(t, "", w)), "--inbox /x/inbox.jsonl --then 'theirs' #", "one meter of an inbox is enough")
	w.Meter.Below = belowOf(t, install(t, "", metered()))
	assert.Equal(t, "/abs/heartbeat-meter --inbox /x/inbox.jsonl", lineOf(t, install(t, "", w)))
	b := otherInbox(metered())
	b.Meter = &settings.Meter{Command: "/abs/heartbeat-meter", Below: belowOf(t, install(t, "", metered()))}
	z := install(t, "", b)
	assert.Equal(t, "/abs/heartbeat-meter --inbox /y/other.jsonl --then '/abs/heartbeat-meter --inbox /x/inbox.jsonl' # shows the status line of another settings file", lineOf(t, z))
	assert.Equal(t, z, uninstall(t, z, metered()), "what another file runs is not this one's")
}

func TestShown(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) settings.File {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return settings.File{Path: path}
	}
	user, project, local := file("user", statusOf(t, "u")), file("project", statusOf(t, "p")), file("local", "{}")
	given, managed := settings.File{Path: filepath.Join(dir, "missing")}, settings.File{Path: filepath.Join(dir, "managed"), Managed: true}
	files := []settings.File{user, project, local, given, managed}
	line, from := settings.Shown(files)
	assert.Equal(t, "p", line.Command)
	assert.Equal(t, project, from)
	assert.Equal(t, files[:1], settings.Below(files, project.Path))
	assert.Equal(t, files[:2], settings.Below(files, dir+"/./local"))
	assert.Equal(t, files[:4], settings.Below(files, "/some/other.json"))
	assert.Empty(t, settings.Below(files, user.Path))

	file("project", statusOf(t, "p")+" // the client loads nothing of this file")
	line, _ = settings.Shown(files)
	assert.Equal(t, "u", line.Command)
	file("user", "[")
	line, _ = settings.Shown(files)
	assert.Nil(t, line)
	file("local", `{"statusLine":null}`)
	line, _ = settings.Shown(files)
	assert.Empty(t, line.Command)
}

func TestLookFindsTheMeter(t *testing.T) {
	content, err := settings.Look([]byte("{}"), "")
	require.NoError(t, err)
	assert.Nil(t, content.StatusLine)
	assert.Nil(t, content.StatusLine.Meter(inbox))

	content, err = settings.Look([]byte(install(t, install(t, "", metered()), otherInbox(metered()))), "")
	require.NoError(t, err)
	assert.Len(t, content.StatusLine.Meters, 2)
	assert.Equal(t, &settings.MeterUse{Command: "/abs/heartbeat-meter", Inbox: inbox, Plain: true}, content.StatusLine.Meter(inbox))
	assert.Nil(t, content.StatusLine.Meter("/z.jsonl"))

	content, err = settings.Look([]byte(statusOf(t, `a | heartbeat-meter --inbox "/x/inbox.jsonl"`)), "")
	require.NoError(t, err)
	assert.Equal(t, &settings.MeterUse{Command: "heartbeat-meter", Inbox: inbox}, content.StatusLine.Meter(inbox))
}
