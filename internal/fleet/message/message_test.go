package message

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// msg is a message without a server.
type msg struct {
	jetstream.Msg
	data    string
	headers nats.Header
}

func (m msg) Data() []byte         { return []byte(m.data) }
func (m msg) Headers() nats.Header { return m.headers }
func (m msg) Subject() string      { return "work.review" }
func (m msg) Reply() string        { return "$JS.ACK.WORK.hb.2.7.9.1.0" }
func (m msg) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Stream: "WORK", Sequence: jetstream.SequencePair{Stream: 7}, NumDelivered: 2, Timestamp: time.UnixMicro(stored)}, nil
}

// own is the id of a message without one in its headers, which was stored then.
const (
	stored = 1_795_383_200_123_456
	own    = "WORK:7:hoernlxl4w"
)

func of(t *testing.T, m msg) Message {
	w, err := Parse(m)
	require.NoError(t, err)
	return w
}

func TestID(t *testing.T) {
	assert.Equal(t, own, of(t, msg{}).ID)
	assert.Equal(t, "m", of(t, msg{headers: nats.Header{HeaderMsgID: {"m"}}}).ID)
	w := of(t, msg{headers: nats.Header{HeaderMsgID: {"m"}, HeaderID: {"a.b *"}, HeaderAgain: {"2"}, HeaderReply: {"_hb.WORK.reply.x"}}})
	assert.Equal(t, "a.b *", w.ID)
	assert.Equal(t, "a.b *~2", w.Entry)
	assert.Equal(t, "_hb.WORK.reply.x", w.Reply)
	assert.EqualValues(t, 2, w.Copy)
	for _, bad := range []string{"a.*", ">", "a b", "", "a..b", ".a", strings.Repeat("x", 2000)} {
		assert.Empty(t, of(t, msg{headers: nats.Header{HeaderReply: {bad}}}).Reply, "%q", bad)
	}
	for _, bad := range []string{"-1", "x", "0"} {
		assert.Zero(t, of(t, msg{headers: nats.Header{HeaderAgain: {bad}}}).Again, "%q", bad)
	}
}

func TestAnIDThatIsTooLong(t *testing.T) {
	for _, name := range []string{HeaderID, HeaderMsgID} {
		w := of(t, msg{data: "do it", headers: nats.Header{name: {strings.Repeat("x", MaxID)}}})
		assert.Len(t, w.ID, MaxID)
		_, err := w.InboxMessage()
		require.NoError(t, err)

		w = of(t, msg{data: "do it", headers: nats.Header{name: {strings.Repeat("x", MaxID+1)}}})
		assert.Equal(t, own, w.ID, "its dead letter has to have one")
		_, err = w.InboxMessage()
		assert.ErrorContains(t, err, "its header "+name+" has 4097 bytes, and an id may have no more than 4096")
	}
}

func TestAnObjectWithoutAPromptIsText(t *testing.T) {
	for _, data := range []string{`{"PROMPT": "x"}`, `{"prompt": 1}`, `{"prompt": null}`, `{}`, `{`, `[{"prompt": "x"}]`} {
		w := of(t, msg{data: data})
		m, err := w.InboxMessage()
		require.NoError(t, err, data)
		assert.Equal(t, data, m.Text)
	}
}

func TestEntryIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"a", "a~1", "a~0", "a~1~0", "a~", "\xff", "=FF", "a\tb", "a=09b", strings.Repeat("x", 600)} {
		for again := range 3 {
			e := EntryID(id, again)
			assert.False(t, seen[e], "%q of %q", e, id)
			seen[e] = true
		}
	}
	assert.Equal(t, "a", EntryID("a", 0))
	assert.Equal(t, "=ka=09b", EntryID("a\tb", 0), "an inbox takes it")
}

func TestText(t *testing.T) {
	for _, c := range []struct{ data, text, err string }{
		{data: "review it", text: "review it"},
		{data: "{\n \"prompt\": \"review\",\n \"id\": \"mine\", \"team\": \"x\", \"nats\": 1}", text: "review"},
		{data: `{"a":1}`, text: `{"a":1}`},
		{data: `"plain"`, text: `"plain"`},
		{data: `{"prompt":"x"`, text: `{"prompt":"x"`},
		{data: "", err: "the text is empty"},
		{data: " \n", err: "the text is empty"},
		{data: "a\xff", err: "not UTF-8 (byte 1)"},
		{data: `{"prompt":"x","limits":{"usd":"much"}}`, err: "limits"},
		{data: `{"prompt":"  "}`, err: "the text is empty"},
	} {
		w := of(t, msg{data: c.data})
		m, err := w.InboxMessage()
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%q", c.data)
			continue
		}
		require.NoError(t, err, "%q", c.data)
		assert.Equal(t, c.text, m.Text)
		assert.Equal(t, own, m.ID)
		raw, err := json.Marshal(m.Metadata["nats"])
		require.NoError(t, err)
		assert.JSONEq(t, `{"stream":"WORK","seq":7,"subject":"work.review","copy":2}`, string(raw))
		assert.EqualValues(t, 2, CopyOf(map[string]json.RawMessage{"nats": raw}))
	}
	w := of(t, msg{data: `{"prompt":"x","team":"y","not_before":"2030-01-01T00:00:00Z"}`})
	m, err := w.InboxMessage()
	require.NoError(t, err)
	assert.Equal(t, json.RawMessage(`"y"`), m.Metadata["team"])
	assert.Equal(t, 2030, m.NotBefore.Year())
	assert.Equal(t, time.UTC, m.NotBefore.Location())
}

func TestHeadersThatAreKept(t *testing.T) {
	h := nats.Header{
		"Team": {"x", " y: z"}, "team": {"\xff"}, "Trace-Id": {""}, "Heartbeat-Reason": {"mine"},
		"Nats-TTL": {"1s"}, "nats-rollup": {"all"}, HeaderMsgID: {"m"}, HeaderID: {"i"}, HeaderAgain: {"1"}, HeaderReply: {"r"},
	}
	w := of(t, msg{headers: h})
	assert.Equal(t, [][]byte{[]byte("Heartbeat-Reason:mine"), []byte("Team:x"), []byte("Team: y: z"), []byte("Trace-Id:"), []byte("team:\xff")}, w.Headers)
	assert.Zero(t, w.HeadersLeft)
	back := nats.Header{}
	lines := []string{"none", ":x", "Nats-Rollup:all", "Heartbeat-Id:other", "a b:c", "Ä:c", "Line:a\r\nNats-Rollup: all"}
	for _, line := range w.Headers {
		lines = append(lines, string(line))
	}
	Restore(back, lines)
	assert.Equal(t, nats.Header{"Team": {"x", " y: z"}, "team": {"\xff"}, "Trace-Id": {""}, "Heartbeat-Reason": {"mine"}}, back)

	many := nats.Header{}
	for range 5000 {
		many.Add("A", "v")
	}
	w = of(t, msg{headers: many})
	assert.Len(t, w.Headers, maxHeaders)
	assert.Equal(t, 5000-maxHeaders, w.HeadersLeft)
	w = of(t, msg{headers: nats.Header{"A": {strings.Repeat("x", maxHeaderBytes)}, "B": {"y"}}})
	assert.Empty(t, w.Headers)
	assert.Equal(t, 2, w.HeadersLeft)
}

func TestWhatItsEntryTells(t *testing.T) {
	for data, is := range map[string]bool{
		"a text": true, `"quoted"`: true, `{"a":1}`: true, `{"prompt":1}`: true, `{"prompt":"x"}`: false,
		strings.Repeat("\x01", maxText): true, strings.Repeat("x", maxText+1): false,
	} {
		w := of(t, msg{data: data})
		assert.Equal(t, is, w.IsText(), "%.20q", data)
	}
}

// FuzzMessage checks that whatever is sent is an entry under its own id, or has a sentence
// that says why not.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		"", "a", `{"prompt":"x"}`, `{"prompt":"x","expires_at":"1"}`, "{\"prompt\":\"\xff\"}", `{"prompt":"x","sent_at":1,"PROMPT":2}`,
		`{"prompt":"x","id":7}`, `{"prompt":"x","prompt":1}`, `[1]`, `{"prompt":"x","a":[[[[]]]]}`, "\ufeff{}", "\x00",
	} {
		f.Add(s, "id", "m", "", "_hb.WORK.reply.x", "X", "y")
	}
	f.Add("a", own, "", "1", "$JS.x", "Nats-Rollup", "all")
	f.Add("a", own, own, "-1", "a.>", "Heartbeat-Id", "b")
	f.Add("a", "", "WORK:7", "99999999999999999999", " ", "a:b", "c\r\nd")
	f.Add("a", strings.Repeat("x", MaxID+1), "~1", "2", strings.Repeat("a.", 600)+"a", "", "")
	f.Fuzz(func(t *testing.T, data, id, msgID, again, reply, header, value string) {
		h := nats.Header{HeaderID: {id, "other"}, HeaderMsgID: {msgID}, HeaderAgain: {again}, HeaderReply: {reply}}
		h.Add(header, value)
		w, err := Parse(msg{data: data, headers: h})
		require.NoError(t, err)
		require.NotEmpty(t, w.ID)
		require.LessOrEqual(t, len(w.ID), MaxID)
		require.True(t, w.ID == own || w.Again > 0 || !IsUnnamed("WORK", w.ID), "it is named as another one: %q", w.ID)
		require.True(t, utf8.ValidString(w.Entry))
		require.NotContains(t, w.Reply, " ")
		back, lines := nats.Header{}, []string{}
		for _, line := range w.Headers {
			lines = append(lines, string(line))
		}
		Restore(back, lines)
		for name := range back {
			require.True(t, isSenders(name))
		}
		m, err := w.InboxMessage()
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NoError(t, m.Check())
		require.Equal(t, w.Entry, m.ID)
		if w.IsText() {
			require.Equal(t, data, m.Text)
		}
	})
}
