package worker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// row is a message that somebody sends, and what becomes of it: an entry with this id, or a
// dead letter with this reason. OWN is the id of a message that names none.
type row struct {
	name    string
	data    string
	headers nats.Header
	entry   string
	dead    string
}

func id(id string) nats.Header { return nats.Header{message.HeaderID: {id}} }

func with(id, name string, values ...string) nats.Header {
	return nats.Header{message.HeaderID: {id}, name: values}
}

func hostile() []row {
	long := strings.Repeat("x", message.MaxID)
	deep := func(n int) string {
		return `{"prompt":"x","a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":%d`, i, i)
		}
		return `{"prompt":"x"` + b.String() + `}`
	}
	return []row{
		{name: "dots", headers: id("a.b.c"), entry: "a.b.c"},
		{name: "a wildcard", headers: id("*"), entry: "*"},
		{name: "wildcards", headers: id("work.*.>"), entry: "work.*.>"},
		{name: "spaces", headers: id("two words"), entry: "two words"},
		{name: "spaces at the ends", headers: id("  ends "), entry: "ends"},
		{name: "a line break, which a header cannot have", headers: id("one\r\nNats-Rollup: all"), entry: "one  Nats-Rollup: all"},
		{name: "control characters", headers: id("bell\x07\x1b[2J"), entry: "=kbell=07=1B=5B2J"},
		{name: "8-bit bytes", headers: id("\xff\xfe"), entry: "=FF=FE"},
		{name: "letters of others", headers: id("é日"), entry: "é日"},
		{name: "spelt as a key", headers: id("=FF"), entry: "=3DFF"},
		{name: "spelt as one that was requeued", headers: id("a~1"), entry: "a~1~0"},
		{name: "the place of the first message", headers: id("WORK:1"), entry: "WORK:1"},
		{name: "the name of another message", headers: id("WORK:1:hoernlxl4w"), entry: "OWN"},
		{name: "as long as may be", headers: id(long), entry: message.Key(long)},
		{name: "10 KB", headers: id(strings.Repeat("y", 10<<10)), dead: "invalid"},
		{name: "none", entry: "OWN"},
		{name: "an empty one", headers: nats.Header{message.HeaderMsgID: {""}}, entry: "OWN"},
		{name: "two", headers: nats.Header{message.HeaderID: {"first", "second"}}, entry: "first"},
		{name: "an empty one before", headers: nats.Header{message.HeaderID: {"", "second-2"}}, entry: "OWN"},
		{name: "both", headers: with("both", message.HeaderMsgID, "by-msg-id"), entry: "both"},

		{name: "again below 0", headers: with("below", message.HeaderAgain, "-1"), entry: "below"},
		{name: "again 0", headers: with("zero", message.HeaderAgain, "0"), entry: "zero"},
		{name: "again too often", headers: with("huge", message.HeaderAgain, "99999999999999999999"), entry: "huge"},
		{name: "again more often than anybody does", headers: with("many", message.HeaderAgain, "4611686018427387904"), entry: "many"},
		{name: "again in words", headers: with("word", message.HeaderAgain, "1e3"), entry: "word"},
		{name: "again", headers: with("again", message.HeaderAgain, "2"), entry: "again~2"},

		{name: "reply to the server", headers: with("to-server", message.HeaderReply, "$JS.API.STREAM.DELETE.WORK"), entry: "to-server"},
		{name: "reply to a dead letter", headers: with("to-dead", message.HeaderReply, "_hb.WORK.dead.x"), entry: "to-dead"},
		{name: "reply to the stream", headers: with("to-stream", message.HeaderReply, "work.a"), entry: "to-stream"},
		{name: "reply to all", headers: with("to-all", message.HeaderReply, "_hb.WORK.reply.>"), entry: "to-all"},
		{name: "headers of thousands of lines", headers: with("lines", "X", make([]string, 3000)...), entry: "lines"},
		{name: "a long header", headers: with("header", "X", strings.Repeat("x", 40<<10)), entry: "header"},

		{name: "0 bytes", data: "-", headers: id("p-none"), dead: "empty"},
		{name: "blanks", data: " \n\t", headers: id("p-blank"), dead: "empty"},
		{name: "not UTF-8", data: "a\xff", headers: id("p-utf8"), dead: "invalid"},
		{name: "NUL", data: "a\x00b", headers: id("p-nul"), entry: "p-nul"},
		{name: "a byte order mark", data: "\ufeffx", headers: id("p-bom"), entry: "p-bom"},
		{name: "another id inside", data: `{"prompt":"x","id":"other"}`, headers: id("p-id"), entry: "p-id"},
		{name: "an id of another kind", data: `{"prompt":"x","id":7}`, headers: id("p-id7"), dead: "invalid"},
		{name: "an array", data: `[{"prompt":"x"}]`, headers: id("p-array"), entry: "p-array"},
		{name: "a number", data: `42`, headers: id("p-number"), entry: "p-number"},
		{name: "a string", data: `"x"`, headers: id("p-string"), entry: "p-string"},
		{name: "null", data: `null`, headers: id("p-null"), entry: "p-null"},
		{name: "no prompt", data: `{"text":"x"}`, headers: id("p-object"), entry: "p-object"},
		{name: "a prompt that is no string", data: `{"prompt":["x"]}`, headers: id("p-list"), entry: "p-list"},
		{name: "an empty prompt", data: `{"prompt":""}`, headers: id("p-empty"), dead: "invalid"},
		{name: "two prompts", data: `{"prompt":"x","prompt":"y"}`, headers: id("p-two"), entry: "p-two"},
		{name: "half an object", data: `{"prompt":"x"`, headers: id("p-half"), entry: "p-half"},
		{name: "limits that are none", data: `{"prompt":"x","limits":{"usd":"much"}}`, headers: id("p-limits"), dead: "invalid"},
		{name: "a time that is none", data: `{"prompt":"x","not_before":"soon"}`, headers: id("p-time"), dead: "invalid"},
		{name: "nested", data: deep(20), headers: id("p-20"), entry: "p-20"},
		{name: "nested deeply", data: deep(5000), headers: id("p-5000"), dead: "invalid"},
		{name: "nested so deeply that it is no JSON", data: deep(20_000), headers: id("p-20000"), entry: "p-20000"},
		{name: "thousands of members", data: members(5000), headers: id("p-members"), entry: "p-members"},
		{name: "a long text", data: strings.Repeat("\x01", 700<<10), headers: id("p-long"), entry: "p-long"},
	}
}

// Whatever somebody sends becomes an entry or a dead letter with a reason, and none is
// taken for another.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	a := w.start("one", nil, "--slots", "100", "--no-session")
	rows := hostile()
	seqs := map[uint64]row{}
	for _, r := range rows {
		switch r.data {
		case "":
			r.data = "please do it"
		case "-":
			r.data = ""
		}
		ack, err := w.js.PublishMsg(fleet.Context(t), &nats.Msg{Subject: "work.a", Data: []byte(r.data), Header: r.headers})
		require.NoError(t, err, r.name)
		seqs[ack.Sequence] = r
	}
	require.Len(t, seqs, len(rows), "the server dropped none")
	entries := 0
	for _, r := range rows {
		if r.entry != "" {
			entries++
		}
	}
	settled := func() bool { return len(a.held()) == entries && w.waiting() == uint64(entries) }
	for deadline := time.Now().Add(10 * time.Minute); !settled() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // until each is held or dead
	}

	dead := map[uint64]string{}
	info, err := w.l.Dead.Info(fleet.Context(t))
	require.NoError(t, err)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := w.l.Dead.GetMsg(fleet.Context(t), seq)
		require.NoError(t, err)
		of, err := strconv.ParseUint(m.Header.Get(upstream.HeaderSeq), 10, 64)
		require.NoError(t, err)
		dead[of] = m.Header.Get(upstream.HeaderReason)
		assert.NotEmpty(t, m.Header.Values(upstream.HeaderHistory))
	}
	held := map[uint64]string{}
	box, err := inbox.Open(a.inbox, inbox.Options{})
	require.NoError(t, err)
	for _, c := range a.held() {
		held[c.Seq] = c.Entry
		w.eventually("the entry "+c.Entry, func() bool { return isQueued(t, box, c.Entry) }, a)
	}
	for seq, r := range seqs {
		if r.entry == "OWN" {
			assert.Regexp(t, fmt.Sprintf(`^WORK:%d:[0-9a-z]{10}$`, seq), held[seq], r.name)
			held[seq] = "OWN"
		}
		assert.Equal(t, r.entry, held[seq], "%s: its entry", r.name)
		assert.Equal(t, r.dead, dead[seq], "%s: its dead letter", r.name)
	}
}

func isQueued(t *testing.T, box *inbox.Inbox, entry string) bool {
	v, err := box.View()
	require.NoError(t, err)
	where, err := v.Find(entry)
	require.NoError(t, err)
	require.NoError(t, v.Close())
	return where[entry] == inbox.FoundQueued
}
