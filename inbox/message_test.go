package inbox_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestParseMessage(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 600, time.UTC)
	for line, want := range map[string]inbox.Message{
		`"text"`:              {Text: "text"},
		" \"two\\nlines\" \r": {Text: "two\nlines"},
		`{"prompt":"x"}`:      {Text: "x"},
		`{"prompt":"x","id":"job","a":[1, 2],"b":null}`:                                                          {ID: "job", Text: "x", Metadata: map[string]any{"a": json.RawMessage("[1, 2]"), "b": json.RawMessage("null")}},
		`{"prompt":"x","not_before":"2030-01-02T03:04:05.0000006Z","expires_at":"2030-01-02T03:04:05.0000006Z"}`: {Text: "x", NotBefore: at, Expires: at},
		`{"prompt":"x","limits":{"cost_usd":2.5,"time":"30m"}}`:                                                  {Text: "x", Limits: json.RawMessage(`{"cost_usd":2.5,"time":"30m"}`)},
		`{"prompt":"x","limits":null}`:                                                                           {Text: "x"},
		`{"prompt":"x","sent_at":"yesterday"}`:                                                                   {Text: "x"},
		`{"prompt":"x","id":null,"not_before":null}`:                                                             {Text: "x"},
		`{"prompt":"x","prompt":"y","id":"a","id":"b"}`:                                                          {ID: "b", Text: "y"},
	} {
		got, err := inbox.ParseMessage([]byte(line))
		require.NoError(t, err, line)
		assert.Equal(t, want, got, line)
	}
}

func TestParseMessageRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"":                                    "valid JSON",
		"text":                                "valid JSON",
		`"text`:                               "JSON",
		`"a" "b"`:                             "after top-level value",
		"\"caf\xe9\"":                         "not UTF-8",
		`{"prompt":"x"`:                       "valid JSON",
		`["prompt"]`:                          "not a JSON object",
		`{"text":"x"}`:                        "no string named prompt",
		`{"prompt":1}`:                        "no string named prompt",
		`{"prompt":"x","id":7}`:               "id is not a string",
		`{"prompt":"x","not_before":"soon"}`:  "not_before is not an RFC 3339 time",
		`{"prompt":"x","expires_at":17}`:      "expires_at is not an RFC 3339 time",
		`{"prompt":"x","m":` + deepNote + `}`: "",
	} {
		_, err := inbox.ParseMessage([]byte(line))
		assert.ErrorContains(t, err, says, "%.40s", line)
	}
}

// FuzzParseMessage takes any line for a message. It is refused before anything is appended, or it
// is delivered as the line says.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{
		"", "text", `"text"`, `""`, `"\ud800\u0041"`, `{"prompt":"x"}`, `{"prompt":"x","id":"i","m":{"a":[1e5,null]}}`, `{"prompt":" ","id":"i"}`,
		`{"prompt":"x","not_before":"2030-01-01T00:00:00Z"}`, `{"prompt":"x","expires_at":"9999-12-31T23:59:59+00:01"}`, `{"prompt":"x","":1,"\u0000":"\ud800"}`,
		`{"prompt":"x","sent_at":1,"id":null}`, "{\"prompt\":\"x\",\n\"m\": [ 1,\r2 ]}", `{"prompt":"x","m":1e999,"n":0.10}`, `{"prompt":"x","not_before":"0000-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := inbox.ParseMessage(line)
		if err != nil {
			return
		}
		box := newBox(t, "")
		r, err := box.Append(context.Background(), m, 0)
		if err != nil {
			assert.Empty(t, read(t, box.Path()))
			assert.NoFileExists(t, box.ScheduledPath())
			return
		}
		var file string
		if r.NotBefore != nil {
			assert.True(t, r.NotBefore.Equal(m.NotBefore))
			all, err := box.Scheduled()
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, []string{r.ID, m.Text, r.EntryID}, []string{all[0].ID, all[0].Text, all[0].EntryID})
			assert.True(t, all[0].NotBefore.Equal(m.NotBefore))
			file = read(t, box.ScheduledPath())
		} else {
			file = read(t, box.Path())
		}
		require.Equal(t, 1, len(split([]byte(file))))
		require.Equal(t, r.EntryID, sha256Hex(split([]byte(file))[0].raw))

		// The written line is a message again, with the same content.
		again, err := inbox.ParseMessage([]byte(file))
		require.NoError(t, err)
		assert.Equal(t, m.Text, again.Text)
		assert.Equal(t, r.ID, again.ID)
		assert.True(t, m.Expires.Equal(again.Expires))
		require.Len(t, again.Metadata, len(m.Metadata))
		for name, value := range m.Metadata {
			want, err := json.Marshal(value)
			require.NoError(t, err)
			got, err := json.Marshal(again.Metadata[name])
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		}
		if r.NotBefore == nil {
			e, err := next(t, box)
			if !m.Expires.IsZero() && m.Expires.Before(noon) {
				require.ErrorIs(t, err, inbox.ErrEmpty)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{r.ID, m.Text}, []string{e.ID, e.Text})
		}
	})
}
