package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/guild"
	repeat "heartbeat/internal/testing/long"
	"heartbeat/internal/testing/model"
)

// agentVariable makes this program the stand-in for the client.
const agentVariable = "HEARTBEAT_TEST_AGENT"

func serveAgent() {
	if os.Getenv(agentVariable) != "" {
		os.Exit(agent.InPrint(os.Args[1:], func(t agent.Printed) string {
			time.Sleep(100 * time.Millisecond) // so that there is a time to be killed in
			return "done: " + t.Text
		}))
	}
}

// standIn puts the stand-in in the client's place: it starts in a hundredth of the time.
func (h *house) standIn() *house {
	h.t.Helper()
	self, err := os.Executable()
	require.NoError(h.t, err)
	require.NoError(h.t, os.Mkdir(h.path("transcripts"), 0o700))
	return h.shell(fmt.Sprintf("export %s=1 %s='%s'\nexec '%s' \"$@\"", agentVariable, agent.TranscriptsVariable, h.path("transcripts"), self))
}

// chatter is a client that prints so many messages of 4 KiB before it begins.
func chatter(n int) string {
	return fmt.Sprintf(`pad=$(head -c 4096 /dev/zero | tr '\0' x)
for i in $(seq %d); do
	echo '{"type":"assistant","message":{"id":"m'$i'","content":[{"type":"text","text":"line '$i' '$pad'"}]}}'
	[ $((i %% 50)) -ne 0 ] || sleep 0.02
done
exec "$CLAUDE" "$@"`, n)
}

// Two hosts write to one database that is read all the time.
func TestHostedTogether(t *testing.T) {
	h := newHouse(t, func(model.Request) model.Reply { return model.Text("done") })
	h.shell(chatter(500))
	ids := []string{"ses-a", "ses-b"}
	for _, id := range ids {
		h.start(h.seed(id, "go [e1]", guildOf...))
	}
	reads := 0
	look := func() string {
		out, err := exec.Command("sqlite3", "-readonly", "-cmd", ".timeout 600000", h.own(), "select session, count(*), max(n) from messages group by 1").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	ctx := minutes(t)
	h.until(ctx, "both are over", func() bool {
		for line := range strings.Lines(look()) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			require.Len(t, cells, 3, line)
			require.Equal(t, cells[1], cells[2], "a gap: %s", line)
		}
		reads++
		return h.over(ids[0]) && h.over(ids[1])
	})
	t.Logf("%d reads meanwhile", reads)
	for _, id := range ids {
		s := h.known(id)
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, 501, s.Messages)
		assert.Empty(t, h.state(id).Warnings)
		h.agrees(s)
	}
	h.isClean(ids...)
}

// Sessions in a row leave nothing behind, not even a descriptor in who starts them.
func TestHostedInARow(t *testing.T) {
	h := newHouse(t, nil).standIn()
	var before int
	var ids []string
	for n := range repeat.Rounds(10, 100) {
		id := fmt.Sprintf("ses-%d", n)
		ids = append(ids, id)
		h.start(h.seed(id, "go", guildOf...))
		s := h.await(minutes(t), id)
		require.Equal(t, "completed", s.Status)
		require.Equal(t, guild.Count{Applied: 1}, s.Record)
		if n == 0 {
			before = descriptors(t)
		}
	}
	h.isClean(ids...)
	assert.Empty(t, h.letters())
	assert.LessOrEqual(t, descriptors(t), before+2) // connections to the guild come and go
	left, err := os.ReadDir(h.path("tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Equal(t, len(ids), strings.Count(h.verb("list", "--json"), "\n"))
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return len(all)
}

// Readers that attach while a session runs get all messages from the first one on, each
// once. One that does not read holds nobody up.
func TestHostedReaders(t *testing.T) {
	const messages = 2000
	ready := make(chan struct{})
	h := newHouse(t, func(model.Request) model.Reply {
		<-ready
		return model.Text("done")
	})
	h.shell(chatter(messages))
	h.start(h.seed("ses-read", "go [e1]", guildOf...))
	ctx := minutes(t)
	h.until(ctx, "there are messages", func() bool { return h.state("ses-read").Messages > 0 })
	quick, slow := h.reader(), h.reader()
	_, err := slow.ReadByte() // it is attached, and reads no more for now
	require.NoError(t, err)
	require.NoError(t, slow.UnreadByte())
	live := make(chan []stream.Stored, 1)
	go func() { live <- numbered(t, quick) }()
	_, err = h.Model.WaitRequests(ctx, 1)
	require.NoError(t, err)
	close(ready)
	s := h.await(ctx, "ses-read") // although the slow one has read next to nothing
	assert.Equal(t, "completed", s.Status)
	_, contents := h.stored("ses-read")
	for _, all := range [][]stream.Stored{<-live, numbered(t, slow), numbered(t, h.reader())} {
		if assert.Len(t, all, len(contents)) {
			for i, m := range all {
				require.JSONEq(t, string(contents[i]), string(m.Content))
			}
		}
	}
	h.agrees(s)
	h.isClean("ses-read")
}

// reader is the output of attach.
func (h *house) reader() *bufio.Reader {
	h.t.Helper()
	cmd := h.host("attach", "ses-read", "--json")
	out, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	cmd.Stderr = os.Stderr
	require.NoError(h.t, cmd.Start())
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended where the test has not failed
		_ = cmd.Wait()
	})
	return bufio.NewReader(out)
}

// numbered reads messages to the end; they have to be numbered from 1.
func numbered(t *testing.T, in *bufio.Reader) (all []stream.Stored) {
	d := json.NewDecoder(in)
	for {
		var m stream.Stored
		err := d.Decode(&m)
		if err == io.EOF {
			return all
		}
		if !assert.NoError(t, err) || !assert.Equal(t, int64(len(all)+1), m.N) {
			return all
		}
		all = append(all, m)
	}
}
