package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/testing/fleet"
)

var sizes = regexp.MustCompile(`the message has (\d+) bytes \(\S+ \S+\) with its headers, and the (?:server|stream) \S+ takes no more than (\d+) \(`)

// What the server's max_payload is about is the text with its envelope and its headers: a
// message of that size is sent, and one with a byte more is refused with both sizes.
func TestTheLargestMessage(t *testing.T) {
	s := fleet.Start(t, func(o *server.Options) { o.MaxPayload = maxPayload })
	status, _, said := run(t, "setup", "--server", s.URL())
	require.Zero(t, status, said)
	send := func(n int, flags ...string) (int, string) {
		file := filepath.Join(t.TempDir(), "text")
		require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("x", n)), 0o600))
		status, _, said := run(t, append([]string{"send", "--server", s.URL(), "--subject", "work.a", "--file", file}, flags...)...)
		return status, said
	}
	for _, flags := range [][]string{{"--id", "a"}, {"--id", "b", "--meta", "team=platform"}, {"--id", "a longer id", "--max-cost", "1"}} {
		status, said := send(maxPayload, flags...)
		require.Equal(t, cli.ExitError, status)
		m := sizes.FindStringSubmatch(said)
		require.NotNil(t, m, said)
		has, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(maxPayload), m[2])
		most := maxPayload - (has - maxPayload)
		status, said = send(most+1, flags...)
		assert.Equal(t, cli.ExitError, status)
		assert.Contains(t, said, fmt.Sprintf("the message has %d bytes", maxPayload+1))
		status, said = send(most, flags...)
		assert.Zero(t, status, said)
	}

	_, js := s.Connect(t)
	found, err := js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 3, found.CachedInfo().State.Msgs)
	c := found.CachedInfo().Config
	c.MaxMsgSize = 1000
	_, err = js.UpdateStream(fleet.Context(t), c)
	require.NoError(t, err)
	status, said = send(2000)
	assert.Equal(t, cli.ExitError, status)
	m := sizes.FindStringSubmatch(said)
	require.NotNil(t, m, said)
	assert.Equal(t, "1000", m[2])
}

// A text that no inbox takes is not sent.
func TestTextsThatNoInboxTakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "the text is empty"},
		"blanks":    {" \n\t", "the text is empty"},
		"not UTF-8": {"a\xff", "not UTF-8 \\(byte 1\\)"},
		// Each byte takes six in the inbox.
		"long there": {strings.Repeat("\x01", inbox.MaxLine/6), `the entry is \d+ bytes long, and \d+ is the most`},
	} {
		_, err := (&send{subject: "work.a", common: common{stream: "WORK"}}).message(c.text)
		require.Error(t, err, name)
		assert.Regexp(t, c.want, err.Error(), name)
	}
}
