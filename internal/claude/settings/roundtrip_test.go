package settings_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/testing/long"
)

// checkProperties checks the package's promises on a settings file x without heartbeat's parts.
func checkProperties(t testing.TB, x string) {
	t.Helper()
	a := wiring()
	y := install(t, x, a)
	assert.Equal(t, y, install(t, y, a), "a second install changes nothing")
	assert.Equal(t, x, uninstall(t, y, a), "uninstall restores every byte")
	assert.Equal(t, foreignMeaning(t, x), foreignMeaning(t, y), "the meaning of everything else is the same")
	assert.True(t, isSubsequence(x, y), "every byte of the file survives, in order")

	moved := a
	moved.Command, moved.Timeout = "/moved/heartbeat-stop", 30
	moved.Args = []string{"--park", "--inbox", inbox}
	moved.Events = []string{settings.SessionEnd, settings.Stop}
	updated := install(t, y, moved)
	assert.Equal(t, updated, install(t, updated, moved), "a second update changes nothing")
	assert.Equal(t, x, uninstall(t, updated, moved), "uninstall after an update")

	checkRewake(t, x, y)
	checkMeter(t, x, y)
	checkAllowed(t, x, y)
	checkLines(t, x)

	b := otherInbox(a)
	b.Events = []string{settings.UserPromptSubmit, settings.Stop}
	both := install(t, y, b)
	assert.Equal(t, both, install(t, both, a), "side by side, neither changes the other")
	assert.Equal(t, y, uninstall(t, both, b), "the second goes first")
	assert.Equal(t, x, uninstall(t, uninstall(t, both, a), b), "the first goes first")
}

// checkRewake checks the same for the wiring in the background, and that each of the two wirings turns into the other as
// if that had been the only one. y is x with the wiring that is not in the background.
func checkRewake(t testing.TB, x, y string) {
	t.Helper()
	a, r := wiring(), rewake()
	z := install(t, x, r)
	assert.Equal(t, z, install(t, z, r), "a second install changes nothing")
	assert.Equal(t, x, uninstall(t, z, a), "uninstall restores every byte, and need not know which wiring it is")
	assert.Equal(t, foreignMeaning(t, x), foreignMeaning(t, z), "the meaning of everything else is the same")
	assert.True(t, isSubsequence(x, z), "every byte of the file survives, in order")
	assert.Equal(t, z, install(t, y, r), "into the background")
	assert.Equal(t, y, install(t, z, a), "and out of it")
	assert.Equal(t, x, uninstall(t, install(t, y, r), a), "uninstall after the change")

	b := otherInbox(r)
	both := install(t, y, b)
	assert.Equal(t, both, install(t, both, a), "one inbox each way: neither changes the other")
	assert.Equal(t, y, uninstall(t, both, b), "the second goes first")
	assert.Equal(t, x, uninstall(t, uninstall(t, both, a), b), "the first goes first")
}

// checkMeter checks the same for a wiring without a meter, and for one that shows the status line of another file.
func checkMeter(t testing.TB, x, y string) {
	t.Helper()
	bare, lent := wiring(), wiring()
	bare.Meter = nil
	lent.Meter = &settings.Meter{Command: "/abs/heartbeat-meter", Below: belowOf(t, `{"statusLine":{"type":"command","command":"b 'c'","padding":3}}`)}
	z := install(t, x, bare)
	assert.Equal(t, z, install(t, y, bare), "without the meter, as if it had never been there")
	assert.Equal(t, x, uninstall(t, install(t, z, wiring()), bare), "uninstall after the meter was added")

	l := install(t, x, lent)
	assert.Equal(t, l, install(t, l, lent), "a second install changes nothing")
	assert.Equal(t, x, uninstall(t, l, bare), "uninstall restores every byte")
	assert.Equal(t, foreignMeaning(t, x), foreignMeaning(t, l), "the meaning of everything else is the same")
	assert.Equal(t, x, uninstall(t, install(t, l, wiring()), bare), "uninstall after the other file's line went")
	b := otherInbox(lent)
	both := install(t, l, b)
	assert.Equal(t, both, install(t, both, lent), "side by side, neither changes the other")
	assert.Equal(t, x, uninstall(t, uninstall(t, both, lent), b), "the first goes first")
	assert.Equal(t, l, uninstall(t, both, b), "the second goes first")
}

// belowOf returns the status line of a settings file.
func belowOf(t testing.TB, file string) *settings.StatusLine {
	t.Helper()
	content, err := settings.Look([]byte(file), "")
	require.NoError(t, err)
	return content.StatusLine
}

// isSubsequence reports whether y is x with bytes inserted.
func isSubsequence(x, y string) bool {
	for _, c := range []byte(x) {
		i := strings.IndexByte(y, c)
		if i < 0 {
			return false
		}
		y = y[i+1:]
	}
	return true
}

func TestRoundTripOfDocuments(t *testing.T) {
	for name, x := range documents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkProperties(t, x)
		})
	}
}

func TestRoundTripOfGeneratedDocuments(t *testing.T) {
	const shards = 4
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < long.Rounds(100, 2000); seed += shards {
				x := generate(rand.New(rand.NewPCG(uint64(seed), 7)))
				checkProperties(t, x)
				require.False(t, t.Failed(), "seed %d: %q", seed, x)
			}
		})
	}
}

func TestEditsInBetweenStay(t *testing.T) {
	edits := map[string]func(string) string{
		"value":       func(s string) string { return strings.Replace(s, "opus", "sonnet", 1) },
		"first":       func(s string) string { return strings.Replace(s, "{", "{\"zz\": [true],", 1) },
		"comment":     func(s string) string { return s + "/* looked at */" },
		"before ours": func(s string) string { return strings.Replace(s, `"token": "`, `"new": "x", "token": "`, 1) },
	}
	for seed := range long.Rounds(100, 500) {
		x := generate(rand.New(rand.NewPCG(uint64(seed), 11)))
		if !strings.Contains(x, `"token"`) {
			continue
		}
		for name, edit := range edits {
			got := uninstall(t, edit(install(t, x, wiring())), wiring())
			require.Equal(t, edit(x), got, "seed %d, %s", seed, name)
		}
	}
}

// FuzzDocument lets the fuzzer write the settings file.
func FuzzDocument(f *testing.F) {
	for _, x := range documents {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x string) {
		if strings.Contains(x, "eart") || strings.Contains(x, `\u`) && strings.Contains(x, "CAP") || strings.Contains(x, "HEARTBEAT") {
			t.Skip("may have parts of ours in it already")
		}
		all := wiring()
		all.Events = []string{
			settings.Stop, settings.StopFailure, settings.SessionStart, settings.SessionEnd, settings.UserPromptSubmit,
			settings.Notification,
		}
		if _, err := settings.Install([]byte(x), all); err != nil {
			return
		}
		checkProperties(t, x)
	})
}

// FuzzGenerated lets the fuzzer make the choices of the generator.
func FuzzGenerated(f *testing.F) {
	for seed := range 5 {
		f.Add(uint64(seed), uint64(seed))
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		checkProperties(t, generate(rand.New(rand.NewPCG(a, b))))
	})
}

// checkAllowed checks the same for a wiring that has sessions use a server. y is x with the wiring that does not.
func checkAllowed(t testing.TB, x, y string) {
	t.Helper()
	a, again, dropped := wiring(), wiring(), wiring()
	a.Allowed = &settings.Allowed{Server: "heartbeat"}
	again.Allowed = &settings.Allowed{Server: "heartbeat", Known: true}
	dropped.Allowed = &settings.Allowed{Server: "heartbeat", Drop: true}
	z := install(t, x, a)
	assert.Equal(t, z, install(t, z, again), "a second install changes nothing")
	assert.Equal(t, z, install(t, y, a), "added to a wiring")
	assert.Equal(t, x, uninstall(t, z, again), "uninstall restores every byte")
	assert.Equal(t, y, install(t, z, dropped), "taken out again")
	assert.True(t, isSubsequence(x, z), "every byte of the file survives, in order")
}

// checkLines checks the promises for a client that takes hooks as lines for a shell.
func checkLines(t testing.TB, x string) {
	t.Helper()
	a := settings.Lines("/abs dir/heartbeat-stop", []string{"--inbox", inbox, "--preamble", "it's $HOME \"quoted\" \\ é"}, 0)
	y := install(t, x, a)
	assert.Equal(t, y, install(t, y, a), "a second install changes nothing")
	assert.Equal(t, x, uninstall(t, y, a), "uninstall restores every byte")
	assert.True(t, isSubsequence(x, y), "every byte of the file survives, in order")
	before := strings.ReplaceAll(y, `"exec '/abs`, `"'/abs`)
	assert.NotEqual(t, y, before)
	assert.Equal(t, y, install(t, before, a), "a line of an earlier release")
	assert.Equal(t, x, uninstall(t, before, a), "uninstall of a line of an earlier release")
	moved := settings.Lines("/moved/heartbeat-stop", []string{"--inbox=" + inbox}, time.Hour)
	updated := install(t, y, moved)
	assert.Equal(t, updated, install(t, updated, moved), "a second update changes nothing")
	assert.Equal(t, x, uninstall(t, updated, a), "uninstall after an update")
	both := install(t, y, otherInbox(a))
	assert.Equal(t, y, uninstall(t, both, otherInbox(a)), "another inbox beside it")
}
