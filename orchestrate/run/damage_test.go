package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// damage is a change to the files of a journal, and whether babysitter refuses the journal
// then.
type damage struct {
	do     func(t testing.TB, j journal)
	refuse bool
}

// journal is the folder of a journal of 12 events, the 4th and 5th of which ask for
// an effect and answer it.
type journal string

func (j journal) path(name string) string { return filepath.Join(string(j), name) }

func (j journal) name(t testing.TB, seq int) string {
	t.Helper()
	entries, err := os.ReadDir(string(j))
	require.NoError(t, err)
	return entries[seq-1].Name()
}

func (j journal) put(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(j.path(name)))
	require.NoError(t, os.WriteFile(j.path(name), []byte(text), 0o600))
}

func (j journal) text(t testing.TB, seq int) string {
	t.Helper()
	text, err := os.ReadFile(j.path(j.name(t, seq)))
	require.NoError(t, err)
	return string(text)
}

// without removes an event.
func without(seq int) func(testing.TB, journal) {
	return func(t testing.TB, j journal) { require.NoError(t, os.Remove(j.path(j.name(t, seq)))) }
}

// with replaces an event by a new file with another text.
func with(seq int, text string) func(testing.TB, journal) {
	return func(t testing.TB, j journal) { j.put(t, j.name(t, seq), text) }
}

// changed replaces an event by a new file in which from is to.
func changed(seq int, from, to string) func(testing.TB, journal) {
	return func(t testing.TB, j journal) {
		require.Contains(t, j.text(t, seq), from)
		j.put(t, j.name(t, seq), strings.Replace(j.text(t, seq), from, to, 1))
	}
}

// named gives an event another name.
func named(seq int, change func(name string) string) func(testing.TB, journal) {
	return func(t testing.TB, j journal) {
		name := j.name(t, seq)
		require.NoError(t, os.Rename(j.path(name), j.path(change(name))))
	}
}

func replace(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

// stray adds a file.
func stray(name, text string) func(testing.TB, journal) {
	return func(t testing.TB, j journal) { j.put(t, name, text) }
}

// repeated adds a copy of an event as the last one.
func repeated(seq int) func(testing.TB, journal) {
	return func(t testing.TB, j journal) { j.put(t, "000013.01ZZZZ.json", j.text(t, seq)) }
}

func all(f func(t testing.TB, j journal, seq int)) func(testing.TB, journal) {
	return func(t testing.TB, j journal) {
		for seq := 12; seq > 0; seq-- {
			f(t, j, seq)
		}
	}
}

var damages = map[string]damage{
	"nothing":                  {func(testing.TB, journal) {}, false},
	"first deleted":            {without(1), true},
	"one deleted":              {without(4), true},
	"last deleted":             {without(12), false},
	"all deleted":              {all(func(t testing.TB, j journal, seq int) { without(seq)(t, j) }), false},
	"emptied":                  {with(12, ""), true},
	"first emptied":            {with(1, ""), true},
	"truncated":                {with(12, `{"type":"EFF`), true},
	"garbage":                  {with(7, "\x00\x00\x00"), true},
	"null":                     {with(2, "null"), true},
	"number":                   {with(12, "5"), false},
	"list":                     {with(12, " \n[{}]"), false},
	"text":                     {with(12, `"RUN_FAILED"`), false},
	"object of another kind":   {with(12, "{}"), false},
	"byte order mark":          {changed(12, "{", "\ufeff{"), true},
	"two values":               {with(12, "{}{}"), true},
	"bytes that are no text":   {changed(12, "orchestrator-task", "\xff"), false},
	"wrong checksum":           {changed(12, `"checksum": "`, `"checksum": "0`), false},
	"stray note":               {stray("notes.json", "{}"), true},
	"stray other file":         {stray("notes.txt", "x"), false},
	"stray half-written event": {stray("000013.01ZZZZ.json.tmp-1-2", "{"), false},
	"hidden":                   {stray(".json", "{}"), true},
	"upper case":               {stray("000013.01ZZZZ.JSON", "{}"), false},
	"no ULID":                  {named(12, func(string) string { return "000012.json" }), true},
	"no number":                {named(12, replace("000012", "x")), true},
	"no padding":               {named(12, replace("000012", "12")), false},
	"no padding, elsewhere":    {named(4, replace("000004", "4")), true},
	"zero":                     {stray("000000.01A.json", "{}"), true},
	"more in the name":         {named(12, replace(".json", ".more.json")), false},
	"ULID that is behind":      {named(12, func(string) string { return "000012.00AAAA.json" }), true},
	"ULID twice":               {func(t testing.TB, j journal) { j.put(t, "000013"+strings.TrimPrefix(j.name(t, 12), "000012"), "{}") }, true},
	"number twice":             {stray("000012.01ZZZZ.json", "{}"), true},
	"swapped": {func(t testing.TB, j journal) {
		a, b := j.text(t, 6), j.text(t, 7)
		with(6, b)(t, j)
		with(7, a)(t, j)
	}, false},
	"answer before the question": {func(t testing.TB, j journal) {
		a, b := j.text(t, 4), j.text(t, 5)
		with(4, b)(t, j)
		with(5, a)(t, j)
	}, true},
	"folder in place": {func(t testing.TB, j journal) {
		n := j.name(t, 12)
		without(12)(t, j)
		require.NoError(t, os.Mkdir(j.path(n), 0o700))
	}, true},
	"asked twice":              {repeated(12), true},
	"answered twice":           {repeated(5), true},
	"created twice":            {repeated(1), false},
	"no effect id":             {changed(12, `"effectId"`, `"x"`), true},
	"effect id a number":       {changed(12, `"effectId": "`, `"effectId": 1, "x": "`), true},
	"effect id empty":          {changed(12, `"effectId": "`, `"effectId": "", "x": "`), true},
	"no key":                   {changed(12, `"invocationKey"`, `"x"`), true},
	"no step":                  {changed(12, `"stepId"`, `"x"`), true},
	"no task":                  {changed(12, `"taskId"`, `"x"`), true},
	"no reference":             {changed(12, `"taskDefRef"`, `"x"`), true},
	"no kind":                  {changed(12, `"kind"`, `"x"`), false},
	"no label":                 {changed(12, `"label"`, `"x"`), false},
	"inputs elsewhere":         {changed(12, `"kind"`, `"inputsRef": "a/b", "kind"`), false},
	"inputs null":              {changed(12, `"kind"`, `"inputsRef": null, "kind"`), true},
	"inputs empty":             {changed(12, `"kind"`, `"inputsRef": "", "kind"`), true},
	"labels null":              {changed(6, `"labels"`, `"labels": null, "x"`), true},
	"labels no list":           {changed(6, `"labels"`, `"labels": "a", "x"`), true},
	"labels of numbers":        {changed(6, `"labels"`, `"labels": ["a", 1], "x"`), true},
	"labels with spaces":       {changed(6, `"labels"`, `"labels": ["\ufeffa\u00a0", "", " a", "\u0085"], "x"`), false},
	"data null":                {changed(12, `"data"`, `"data": null, "x"`), true},
	"data of a note null":      {with(12, `{"type":"NOTE","data":null}`), false},
	"data a text":              {with(12, `{"type":"EFFECT_RESOLVED","data":"x"}`), true},
	"type a number":            {changed(12, `"type": "`, `"type": 5, "x": "`), false},
	"no status":                {changed(5, `"status"`, `"x"`), true},
	"other status":             {changed(5, `"status": "`, `"status": "x`), true},
	"result a number":          {changed(5, `"resultRef"`, `"resultRef": 1, "x"`), true},
	"result zero":              {changed(5, `"resultRef"`, `"resultRef": 0, "x"`), false},
	"result null":              {changed(5, `"resultRef"`, `"resultRef": null, "x"`), false},
	"answer to what is not":    {changed(5, `"effectId": "`, `"effectId": "x`), true},
	"failed without a reason":  {stray("000013.01ZZZZ.json", `{"type":"RUN_FAILED"}`), false},
	"failed with a text":       {stray("000013.01ZZZZ.json", `{"type":"RUN_FAILED","data":{"error":"x"}}`), false},
	"completed, then stopped":  {stray("000013.01ZZZZ.json", `{"type":"RUN_COMPLETED","data":{}}`), false},
	"lower case":               {stray("000013.01ZZZZ.json", `{"type":"run_completed","data":{}}`), false},
	"key of another effect":    {func(t testing.TB, j journal) { changed(12, j.key(t, 12), j.key(t, 11))(t, j) }, true},
	"escapes in a key":         {changed(12, `"invocationKey": "p1`, `"invocationKey": "\u0070\u0031`), false},
	"escapes in another's key": {func(t testing.TB, j journal) { changed(12, j.key(t, 12), `\u0070`+j.key(t, 11)[1:])(t, j) }, true},
}

func (j journal) key(t testing.TB, seq int) string {
	t.Helper()
	_, rest, ok := strings.Cut(j.text(t, seq), `"invocationKey": "`)
	require.True(t, ok)
	key, _, _ := strings.Cut(rest, `"`)
	return key
}

// Changed journals are refused, or read.
func TestDamage(t *testing.T) {
	for what, d := range damages {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, "waiting")
			d.do(t, journal(filepath.Join(r.Dir(), "journal")))
			_, err := r.State()
			if d.refuse {
				require.ErrorIs(t, err, run.ErrCorrupt)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// Several processes read while the journal grows.
func TestSideBySide(t *testing.T) {
	r := recorded(t, "waiting")
	j := journal(filepath.Join(r.Dir(), "journal"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := 0
			for range 100 {
				s, err := r.State()
				if assert.NoError(t, err) {
					assert.GreaterOrEqual(t, s.LastSeq, last)
					last = s.LastSeq
				}
			}
		})
	}
	for seq := 13; seq < 60; seq++ {
		j.put(t, fmt.Sprintf("%06d.01ZZ%04d.json.tmp", seq, seq), "{}")
		require.NoError(t, os.Rename(j.path(fmt.Sprintf("%06d.01ZZ%04d.json.tmp", seq, seq)), j.path(fmt.Sprintf("%06d.01ZZ%04d.json", seq, seq))))
	}
	all.Wait()
	assert.Equal(t, 59, state(t, r).LastSeq)
}

// The real command accepts and refuses the same changed journals.
func TestDamageAgrees(t *testing.T) {
	c := findCommand(t)
	for what, d := range damages {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, "waiting")
			d.do(t, journal(filepath.Join(r.Dir(), "journal")))
			assert.Equal(t, d.refuse, !c.agree(t, r))
		})
	}
}

// The advice about a damaged journal helps.
func TestRemedies(t *testing.T) {
	c := findCommand(t)
	for _, what := range []string{"one deleted", "emptied", "null", "stray note", "number twice", "answered twice", "asked twice", "no effect id", "answer before the question"} {
		t.Run(what, func(t *testing.T) {
			r := recorded(t, "waiting")
			dir := filepath.Join(r.Dir(), "journal")
			damages[what].do(t, journal(dir))
			for range 3 {
				_, err := r.State()
				if err == nil {
					return
				}
				if strings.Contains(err.Error(), "remove that file") {
					_, rest, _ := strings.Cut(err.Error(), "run waiting: ")
					name, _, _ := strings.Cut(rest, " ")
					require.NoError(t, os.Remove(filepath.Join(dir, name)))
				}
				require.True(t, c.run(t, nil, "", "run:repair-journal", r.Dir()))
			}
			state(t, r)
		})
	}
}

// The sentence that a person reads.
func TestSentence(t *testing.T) {
	for what, want := range map[string]string{
		"one deleted":  "read the journal of run waiting: 000005.01M7ZXJRAWEKXF1VWWCG0AGB10.json stands where the event with seq 4 belongs: `heartbeat orchestrate --run DIR --repair --once` mends it: the run is damaged",
		"emptied":      "read the journal of run waiting: 000012.01M7ZXJSCDG3DV3MNDBT41X9C2.json (seq 12): it is not valid JSON, or cut off: `heartbeat orchestrate --run DIR --repair --once` mends it: the run is damaged",
		"no effect id": "read the journal of run waiting: 000012.01M7ZXJSCDG3DV3MNDBT41X9C2.json (seq 12): it has no effectId: remove that file, and `heartbeat orchestrate --run DIR --repair --once` mends the rest: the run is damaged",
	} {
		r := recorded(t, "waiting")
		damages[what].do(t, journal(filepath.Join(r.Dir(), "journal")))
		_, err := r.State()
		require.EqualError(t, err, strings.Replace(want, "DIR", r.Dir(), 1))
	}
}

// Without a journal babysitter would begin again.
func TestWithoutJournal(t *testing.T) {
	r := recorded(t, "waiting")
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir(), "journal")))
	_, err := r.State()
	require.ErrorIs(t, err, run.ErrCorrupt)
	require.ErrorContains(t, err, "there is no journal folder")
}

// A dangling link is listed, and cannot be read.
func TestLinkToNothing(t *testing.T) {
	r := recorded(t, "waiting")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(r.Dir(), "journal", "000013.01ZZZZ.json")))
	_, err := r.State()
	require.ErrorIs(t, err, run.ErrCorrupt)
	require.ErrorContains(t, err, "000013.01ZZZZ.json")
}
