package settings_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestBadFilesAreRefused(t *testing.T) {
	const retry = ": correct the file, then try again"
	tests := map[string]string{
		"hello":                            "not valid JSON: line 1, column 1: invalid literal: hello" + retry,
		"\n":                               "not valid JSON: line 2, column 1: parsing value: unexpected EOF" + retry,
		"\ufeff":                           "not valid JSON: line 1, column 1: parsing value: unexpected EOF" + retry,
		"{\n  \"a\": 1,\n  b\n}":           "not valid JSON: line 3, column 3: invalid literal: b" + retry,
		"{} {}":                            "not valid JSON: line 1, column 4: invalid character '{' after top-level value" + retry,
		"[]":                               "top level at line 1 (byte 0) is an array, want an object" + retry,
		"// x\nnull":                       "top level at line 2 (byte 5) is null, want an object" + retry,
		"{\n  \"hooks\": []\n}":            "hooks at line 2 (byte 13) is an array, want an object" + retry,
		`{"hooks":{},"hooks":"x"}`:         "hooks at line 1 (byte 20) is a string, want an object" + retry,
		`{"hooks":{"Stop":{}}}`:            "hooks.Stop at line 1 (byte 17) is an object, want an array" + retry,
		`{"hooks":{"StopFailure":true}}`:   "hooks.StopFailure at line 1 (byte 24) is a boolean, want an array" + retry,
		`{"env":7}`:                        "env at line 1 (byte 7) is a number, want an object" + retry,
		`{"a":` + strings.Repeat("[", 1e6): "not valid JSON: too many brackets for a settings file" + retry,
	}
	for file, want := range tests {
		before := strings.Clone(file)
		for _, w := range []settings.Wiring{wiring(), rewake()} {
			out, err := settings.Install([]byte(file), w)
			assert.EqualError(t, err, want)
			assert.Nil(t, out)
		}
		assert.Equal(t, before, file)
	}
}

func TestBadFilesAreNotUninstalledFrom(t *testing.T) {
	_, err := settings.Uninstall([]byte(`{"a":`), wiring())
	require.ErrorContains(t, err, "not valid JSON: ")
	_, err = settings.Uninstall([]byte(`{"hooks":1}`), wiring())
	require.EqualError(t, err, "hooks at line 1 (byte 9) is a number, want an object: correct the file, then try again")
}

// A truncated file is an error, unless only white space is missing.
func TestTruncatedFiles(t *testing.T) {
	whole := strings.TrimRight(install(t, documents["two spaces"], wiring()), "\n")
	for i := 1; i < len(whole); i++ {
		_, err := settings.Install([]byte(whole[:i]), wiring())
		assert.ErrorContains(t, err, "not valid JSON: ", whole[:i])
	}
}

func TestLongTextIsClippedInErrors(t *testing.T) {
	_, err := settings.Install([]byte(`{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"`+strings.Repeat("é", 5000)+`"}}`), wiring())
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 700)
	_, err = settings.Install([]byte(strings.Repeat("x", 5000)), wiring())
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 700)
}

// An error that is found after edits names the place in the person's file.
func TestErrorsNamePlacesOfTheFile(t *testing.T) {
	_, err := settings.Install([]byte("{\n  \"hooks\": {\n    \"Stop\": [],\n    \"StopFailure\": {}\n  }\n}"), wiring())
	require.EqualError(t, err, "hooks.StopFailure at line 4 (byte 50) is an object, want an array: correct the file, then try again")
	_, err = settings.Install([]byte("{\n  \"hooks\": {\n    \"Stop\": []\n  },\n  \"env\": {\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": 5}\n}"), wiring())
	require.ErrorContains(t, err, "env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP at line 5 is 5, ")
}

// A project's file may have any number of groups.
func TestManyGroupsTakeNoTime(t *testing.T) {
	begin := processor(t)
	_, err := settings.ReadContent([]byte(`{"hooks":{"Stop":[`+strings.Repeat("{},", 8000)+`{}]}}`), "")
	require.NoError(t, err)
	require.Less(t, processor(t)-begin, 5*time.Second)
}

// processor is the time of the processor that this test has used so far.
func processor(t *testing.T) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
