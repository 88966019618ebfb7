package babysitter

import (
	"strings"
	"testing"
	"unicode/utf8"

	"path/filepath"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func anyIteration(a gjson.Result) bool {
	id := a.Get("metadata.runId").String()
	return id != "" && run{id: id}.isIteration(a)
}

func TestAnswersAmongOtherThings(t *testing.T) {
	const answer = `{"status":"failed","reason":"failed","metadata":{"runId":"r1"}}`
	for name, output := range map[string]string{
		"alone":           answer,
		"between lines":   "before\n" + answer + "\nafter\n",
		"behind a word":   "before " + answer + " after",
		"behind a brace":  "{\n{ a: 1 }\n{\"a\"\n" + answer,
		"behind objects":  strings.Repeat("{\"status\":\"waiting\"}\n", 5000) + answer,
		"behind no JSON":  strings.Repeat("{\"a\":\n", 900) + "\n" + answer,
		"in Windows form": "{ \r\n" + answer[1:] + "\r\n",
	} {
		a, ok := findObject([]byte(output), anyIteration)
		require.True(t, ok, name)
		assert.Equal(t, "r1", a.Get("metadata.runId").Str, name)
	}
	for _, output := range []string{"", "{", answer[:len(answer)-1], "[", `{"status":"odd","reason":"","metadata":{"runId":"r1"}}`, `{"status":"waiting","reason":"","metadata":{"runId":"r1"}}`} {
		_, ok := findObject([]byte(output), anyIteration)
		assert.False(t, ok, output)
	}
}

func TestMembersOfAnyType(t *testing.T) {
	a, ok := findObject([]byte(`{"status":"waiting","reason":1,"metadata":{"runId":"r1"},"nextActions":[
		{"effectId":"E","kind":{"a":1},"labels":[1,"b",null],"requestedAt":7,"inputsRef":null,"schedulerHints":{"sleepUntilEpochMs":"soon"}},
		{"labels":"c","schedulerHints":null,"requestedAt":"2026-01-02T03:04:05.006Z"},{"schedulerHints":{"sleepUntilEpochMs":1e300}}]}`), anyIteration)
	require.True(t, ok)
	it := iterationOf(a)
	require.Len(t, it.NextActions, 3)
	assert.Equal(t, Action{Effect: "E", Kind: `{"a":1}`}, it.NextActions[0])
	assert.Equal(t, Action{}, it.NextActions[1])
	assert.True(t, it.NextActions[2].Until.IsZero())
}

func FuzzFind(f *testing.F) {
	files, err := filepath.Glob("testdata/recorded/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(a.Files[0].Data, "noise")
		f.Add(a.Files[1].Data, "{\"")
	}
	const answer = "{\n  \"status\": \"failed\",\n  \"reason\": \"failed\",\n  \"metadata\": {\"runId\": \"r1\"}\n}\n"
	f.Fuzz(func(t *testing.T, output []byte, noise string) {
		if a, ok := findObject(output, anyIteration); ok {
			_ = iterationOf(a)
		}
		said, _ := message("run:iterate", output)
		said = brief(said)
		assert.True(t, utf8.ValidString(said))
		assert.NotContains(t, said, "\n")
		if strings.ContainsAny(noise, "{") {
			return
		}
		a, ok := findObject([]byte(noise+answer+noise), anyIteration)
		require.True(t, ok)
		assert.Equal(t, Failed, a.Get("status").Str)
	})
}

func FuzzExplain(f *testing.F) {
	files, err := filepath.Glob("testdata/recorded/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(a.Files[1].Data, 1)
	}
	f.Fuzz(func(t *testing.T, stderr []byte, code int) {
		err := (&CLI{}).explain(request{doing: "iterate", command: "run:iterate"}, result{stderr: stderr, code: code})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\n")
		assert.Less(t, len(err.Error()), 2000)
	})
}

// Only run:iterate runs the process: what another command does not say is no fault of that.
func TestACommandThatSaysNothing(t *testing.T) {
	c := &CLI{Command: []string{"babysitter"}}
	err := c.explain(request{doing: "post the result", command: "task:post"}, result{})
	require.EqualError(t, err, "post the result: babysitter ended with status 0 without an answer")
}
