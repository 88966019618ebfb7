package results_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/consumer"
)

// hostile is what a model may say, or a sender.
var hostile = []string{
	"plain", "$(touch PWNED)", "`touch PWNED`", "'; touch PWNED; '", `"; touch PWNED; "`, "a\nBcc: all@example.org\n\nspam",
	"a\r\nX-Evil: yes\r\n", `\"}],"text":"forged`, "<!channel> <b>&amp;</b> *bold* @everyone", "-rm", "%s%n%d", "\x1b[2J", "日本語 ünïcode", `\\u0022\`,
	"@/etc/passwd", "<!-- heartbeat 0 -->", "", strings.Repeat("@", 70_000),
}

// rig is an inbox whose entries are answered, and handed to a script.
type rig struct {
	testing.TB
	box  *inbox.Inbox
	name string
}

func newRig(t testing.TB) *rig {
	for _, name := range []string{"bash", "jq", "curl", "openssl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	return &rig{t, box, "test"}
}

// settle sends an entry and answers it with that text, or sets it aside with that failure.
func (r *rig) settle(id, meta, reply string, answered bool) {
	r.Helper()
	line := `{"id":` + quoted(r, id) + `,"prompt":"x"` + meta + "}\n"
	f, err := os.OpenFile(r.box.Path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r, err)
	_, err = io.WriteString(f, line)
	require.NoError(r, err)
	require.NoError(r, f.Close())
	tx, err := r.box.Begin(r.Context())
	require.NoError(r, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(r, err)
	_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	require.NoError(r, err)
	require.NoError(r, tx.Commit())
	if answered {
		require.NoError(r, tx.Acknowledge(reply))
	} else {
		require.NoError(r, tx.DeadLetterFor(inbox.ReasonFailed, "rate_limit", reply))
	}
	require.NoError(r, tx.Commit())
	require.NoError(r, tx.Close())
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	return string(b)
}

// hand hands over what there is to a script with arguments.
func (r *rig) hand(script string, args ...string) error {
	r.Helper()
	path, err := filepath.Abs(script)
	require.NoError(r, err)
	_, err = consumer.Run(r.Context(), r.box, consumer.Options{
		Name: r.name, Command: "'" + path + "' " + strings.Join(args, " "), Flag: "--exec", Dir: r.TempDir(),
		TimeLimit: time.Minute, Wait: time.Nanosecond, Note: func(text string) { r.Log(text) },
	})
	return err
}

// again hands over all once more, as after a kill of each.
func (r *rig) again() { r.name += "x" }

func secret(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// listener is a server that keeps what it was posted.
type listener struct {
	*httptest.Server
	mu     sync.Mutex
	header http.Header
	body   string
	status int
}

func listen(t testing.TB) *listener {
	l := &listener{status: http.StatusOK}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.header, l.body = r.Header, string(b)
		w.WriteHeader(l.status)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) got() (http.Header, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.header, l.body
}

func unharmed(t testing.TB) {
	t.Helper()
	assert.NoFileExists(t, "PWNED")
}

func TestMail(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/sendmail", []byte("#!/bin/sh\nprintf '%s ' \"$@\" >'"+dir+"/args'\ncat >'"+dir+"/stdin'\n"), 0o700))
	t.Setenv("SENDMAIL", dir+"/sendmail")
	kept := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(b)
	}
	for i, text := range hostile {
		answered := i%2 == 0
		r.settle(fmt.Sprint("job ", i), `,"to":"all@example.org"`, text, answered)
		require.NoError(t, r.hand("mail.sh", "me@example.com"), text)
		assert.Equal(t, "-i -- me@example.com ", kept("args"))
		m, err := mail.ReadMessage(strings.NewReader(kept("stdin")))
		require.NoError(t, err)
		assert.Len(t, m.Header, 6, "%q has added a header: %v", text, m.Header)
		body, err := io.ReadAll(m.Body)
		require.NoError(t, err)
		if want := strings.TrimRight(text, "\r\n"); answered {
			assert.Equal(t, fmt.Sprint("heartbeat: result job ", i), m.Header.Get("Subject"))
			assert.Equal(t, want, strings.TrimRight(string(body), "\r\n"))
		} else {
			assert.Contains(t, string(body), "This was set aside, and has no answer: failed\n\nrate_limit: ")
		}
	}
	first := kept("stdin")
	r.again()
	require.NoError(t, r.hand("mail.sh", "me@example.com"))
	assert.Equal(t, first, kept("stdin"), "the same message")
	unharmed(t)
}

func TestWebhook(t *testing.T) {
	l := listen(t)
	for _, key := range []string{"s3cret", strings.Repeat("long 日", 40)} {
		r := newRig(t)
		file := secret(t, l.URL+"/hook\n"+key+"\n")
		for i, text := range hostile {
			r.settle(fmt.Sprint(i), "", text, true)
			require.NoError(t, r.hand("webhook.sh", file), text)
			header, body := l.got()
			var o outcomes.Handover
			require.NoError(t, json.Unmarshal([]byte(body), &o))
			assert.Equal(t, o.Key, header.Get("X-Heartbeat-Key"))
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte(header.Get("X-Heartbeat-Timestamp") + "." + body))
			assert.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), header.Get("X-Heartbeat-Signature"))
			var line inbox.Result
			require.NoError(t, json.Unmarshal(o.Line, &line))
			assert.Equal(t, text, line.Reply)
		}
	}
	unharmed(t)
}

func TestNtfy(t *testing.T) {
	l, r := listen(t), newRig(t)
	t.Setenv("NTFY_TOKEN_FILE", secret(t, "tk_mine\n"))
	for i, text := range hostile {
		r.settle(fmt.Sprint("job ", i), "", text, i != 0)
		require.NoError(t, r.hand("ntfy.sh", l.URL+"/topic"), text)
		header, body := l.got()
		assert.Equal(t, "Bearer tk_mine", header.Get("Authorization"))
		assert.Empty(t, header.Get("X-Evil"))
		assert.Less(t, len(body), 4096)
		if i == 0 {
			assert.Equal(t, "high", header.Get("Priority"))
			assert.Equal(t, "heartbeat: dead letter job 0", header.Get("Title"))
		}
	}
	unharmed(t)
}

func TestSlack(t *testing.T) {
	l, r := listen(t), newRig(t)
	file := secret(t, l.URL+"\n")
	for i, text := range hostile {
		r.settle(fmt.Sprint(i), "", text, true)
		require.NoError(t, r.hand("slack.sh", file), text)
		_, body := l.got()
		var o map[string]string
		require.NoError(t, json.Unmarshal([]byte(body), &o), body)
		assert.Len(t, o, 1)
		assert.True(t, strings.HasPrefix(o["text"], fmt.Sprintf("result %d\n", i)))
		assert.NotContains(t, o["text"], "<")
	}
	unharmed(t)
}

// A server that refuses, or is not there, keeps the result for the next try, and no secret is
// told.
func TestServerRefuses(t *testing.T) {
	l, r := listen(t), newRig(t)
	r.settle("a", "", "x", true)
	l.status = http.StatusForbidden
	for _, url := range []string{l.URL + "/hunter2", "http://127.0.0.1:1/hunter2"} {
		for _, script := range []string{"webhook.sh", "slack.sh"} {
			err := r.hand(script, secret(t, url+"\nhunter3\n"))
			require.ErrorContains(t, err, "it printed curl: (")
			assert.NotContains(t, err.Error(), "hunter")
		}
	}
	require.ErrorContains(t, r.hand("webhook.sh", secret(t, l.URL)), "has no secret on its second line")
	require.ErrorContains(t, r.hand("mail.sh"), "exit status 64")
	l.status = http.StatusOK
	require.NoError(t, r.hand("slack.sh", secret(t, l.URL)))
}

// Each script says what it is for, and shellcheck finds no fault with it.
func TestScripts(t *testing.T) {
	all, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	require.Len(t, all, 5)
	for _, script := range all {
		out, _ := exec.Command("./"+script, "--help").Output()
		assert.Contains(t, string(out), "Usage: ", script)
	}
	if check, err := exec.LookPath("shellcheck"); err == nil {
		out, err := exec.Command(check, all...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}
