package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSentLinesMustBeWhole(t *testing.T) {
	var all []string
	for i := range 2 {
		for w := range writers {
			all = append(all, message(w, i)+"\n")
		}
	}
	whole := strings.Join(all, "")
	p := &producer{file: filepath.Join(t.TempDir(), "sent"), text: plainText}
	for name, c := range map[string]struct{ content, want string }{
		"all there":    {whole, ""},
		"one lost":     {strings.Join(all[1:], ""), "out of order"},
		"last lost":    {strings.Join(all[:len(all)-1], ""), "1 of writer 7's 2 messages"},
		"twice":        {whole + all[0], "out of order"},
		"torn":         {all[0][:500] + "\n" + whole[entrySize:], "torn"},
		"interleaved":  {all[0][:500] + all[1] + all[0][500:], "torn"},
		"no newline":   {strings.TrimSuffix(whole, "\n"), "newline"},
		"out of order": {all[writers] + whole, "out of order"},
		"foreign":      {whole + "hello\n", "not a message"},
		"no such one":  {whole + message(writers, 0) + "\n", "not a message"},
	} {
		require.NoError(t, os.WriteFile(p.file, []byte(c.content), 0o600))
		err := p.verify(2)
		if c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
}

func TestSentEntriesNeedAnID(t *testing.T) {
	text, err := promptOf([]byte(`{"id":"a","prompt":"hello"}`))
	require.NoError(t, err)
	assert.Equal(t, "hello", text)
	_, err = promptOf([]byte(`{"prompt":"hello"}`))
	require.Error(t, err)
	_, err = promptOf([]byte(`{"id":"a","prompt":"hel`))
	require.Error(t, err)
}

func TestResultsMustBeInOrder(t *testing.T) {
	line := func(i int) string { return fmt.Sprintf(`{"start_offset":%d}`, i*entrySize) + "\n" }
	path := filepath.Join(t.TempDir(), "results")
	for content, want := range map[string]string{
		line(0) + line(1):           "",
		line(0):                     "1 lines for 2 entries",
		line(0) + line(1) + line(2): "3 lines for 2 entries",
		line(1) + line(0):           "instead of 0",
		line(0) + line(0):           "instead of 1024",
		line(0) + "{\n":             "line 2",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		err := answeredInOrder(path, 2)
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	require.Error(t, answeredInOrder(path+"-missing", 2))
}

func TestHookMustWait(t *testing.T) {
	if !canSeeWaiting {
		t.Skip("this system does not show what a process waits for")
	}
	l := testLane(t, 1) // which it delivers at once
	_, err := l.wait()
	require.ErrorContains(t, err, "the hook ended before it waited")
}

func TestLooksMustBeRight(t *testing.T) {
	require.NoError(t, queued([]byte(`{"queued":7}`), 7))
	require.ErrorContains(t, queued([]byte(`{"queued":7}`), 8), "8 entries are queued, and it tells of 7")
	require.Error(t, queued(nil, 0))

	var first strings.Builder
	for i := range peeked {
		fmt.Fprintf(&first, `{"id":%q}`+"\n", sentID(i))
	}
	require.NoError(t, firstOnes([]byte(first.String())))
	require.ErrorContains(t, firstOnes([]byte(first.String()+first.String())), `where "m-0000010" waits`)
	require.ErrorContains(t, firstOnes(nil), "0 entries instead of 10")

	require.NoError(t, tellsOf([]byte(`{"event":"queued","id":"a","entry_id":"b"}`), "a"))
	require.NoError(t, tellsOf([]byte(`{"event":"queued","id":"a","entry_id":"b"}`), "b"))
	require.ErrorContains(t, tellsOf([]byte(`{"event":"queued","id":"ab","entry_id":"b"}`), "a"), "that a is queued")
	require.ErrorContains(t, tellsOf([]byte(`{"event":"delivered","id":"a"}`), "a"), "that a is queued")
	require.Error(t, tellsOf([]byte("{}\n{}\n"), "a"))

	require.NoError(t, gauge([]byte("# TYPE x gauge\nheartbeat_queue_entries{inbox=\"/a\"} 1e+06\nheartbeat_queue_bytes{} 5\n"), 1_000_000))
	require.ErrorContains(t, gauge([]byte("heartbeat_queue_entries{} 5\n"), 6), "it tells of 5")
	require.Error(t, gauge(nil, 0))
}

func TestBatchMustBeThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids")
	right := func(line string, i int) bool { return line == sentID(i) }
	for content, want := range map[string]string{
		sentID(0) + "\n" + sentID(1) + "\n": "",
		sentID(0) + "\n":                    "1 lines for 2 entries",
		sentID(1) + "\n" + sentID(0) + "\n": "line 1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		err := eachIs(path, 2, right)
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
}

func TestAnswersMustBeTheirOwn(t *testing.T) {
	dir := t.TempDir()
	c := &crowd{inbox: filepath.Join(dir, "inbox.jsonl")}
	line := `{"reply":"answer to question 01","acknowledged_at":"2026-03-04T12:00:00.5Z"}` + "\n"
	ends := map[string]time.Time{answerTo(question(1)): time.Date(2026, 3, 4, 12, 0, 1, 0, time.UTC)}
	for content, want := range map[string]string{
		line:                                 "",
		line + line:                          "2 lines for 1 entries",
		"":                                   "0 lines for 1 entries",
		strings.Replace(line, "01", "02", 1): "nobody waited",
		"{\n":                                "results",
	} {
		require.NoError(t, os.WriteFile(c.file(".results.jsonl"), []byte(content), 0o600))
		got, err := c.sinceAcknowledged(ends)
		if want == "" {
			require.NoError(t, err)
			assert.Equal(t, sample{500 * time.Millisecond}, got)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
}
