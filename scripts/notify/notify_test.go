package notify_test

import (
	"encoding/json"
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
	"heartbeat/internal/notify"
)

// hostile is what an entry, an error or a question may say.
var hostile = []string{
	"plain", "$(touch PWNED)", "`touch PWNED`", "'; touch PWNED; '", `"; touch PWNED; "`, "a\nBcc: all@example.org\n\nspam",
	"a\r\nX-Evil: yes\r\n", `\"}],"text":"forged`, "<!channel> <b>&amp;</b> *bold*", "-rm", "%s%n%d", "\x1b[2J", "日本語 ünïcode", `\\u0022\`, "@/etc/passwd",
}

// tell tells of a question with that text, by the command line, with more variables.
func tell(t *testing.T, text, command string, environ ...string) error {
	t.Helper()
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.In("s").Ask("permission_prompt", text))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	report, err := notify.Tell(t.Context(), box, notify.Options{Command: command})
	if err == nil {
		require.Len(t, report.Told, 1)
	}
	return err
}

// shipped is the path of a script, as a word for the shell.
func shipped(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	require.NoError(t, err)
	return "'" + path + "'"
}

// standIn puts a program in front of PATH that keeps its arguments and its stdin.
func standIn(t *testing.T, name string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\0' \"$@\" >'" + dir + "/args'\ncat >'" + dir + "/stdin'\nenv >'" + dir + "/env'\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	return dir, "PATH=" + dir + ":" + os.Getenv("PATH")
}

func kept(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// unharmed holds that nothing in a text was run.
func unharmed(t *testing.T) {
	t.Helper()
	for _, dir := range []string{".", "/"} {
		assert.NoFileExists(t, filepath.Join(dir, "PWNED"))
	}
}

func TestMail(t *testing.T) {
	dir, path := standIn(t, "sendmail")
	for _, text := range hostile {
		require.NoError(t, tell(t, text, shipped(t, "mail.sh")+" me@example.com", path), text)
		assert.Equal(t, "-i\x00--\x00me@example.com\x00", kept(t, dir+"/args"))
		m, err := mail.ReadMessage(strings.NewReader(kept(t, dir+"/stdin")))
		require.NoError(t, err)
		assert.Len(t, m.Header, 5, "%q has added a header: %v", text, m.Header)
		assert.Equal(t, "me@example.com", m.Header.Get("To"))
		assert.True(t, strings.HasPrefix(m.Header.Get("Subject"), "heartbeat: question "), m.Header.Get("Subject"))
		body, err := io.ReadAll(m.Body)
		require.NoError(t, err)
		assert.Contains(t, string(body), "waits for a person: permission_prompt: ")
		assert.Contains(t, string(body), "\nheartbeat status --inbox ")
		assert.Contains(t, string(body), `{"v":1,"what":"question"`)
	}
	unharmed(t)
}

func TestDesktop(t *testing.T) {
	dir, path := standIn(t, "notify-send")
	for _, text := range hostile {
		require.NoError(t, tell(t, text, shipped(t, "desktop.sh"), path, "DBUS_SESSION_BUS_ADDRESS="), text)
		args := strings.Split(kept(t, dir+"/args"), "\x00")
		require.Len(t, args, 6, "%q", args)
		assert.Equal(t, []string{"--app-name=heartbeat", "--urgency=critical", "--"}, args[:3])
		assert.Contains(t, args[4], "waits for a person")
		assert.NotContains(t, args[4], "<")
		assert.Contains(t, kept(t, dir+"/env"), "DBUS_SESSION_BUS_ADDRESS=unix:path=")
	}
	unharmed(t)
}

// listener is a server that keeps what it was posted.
type listener struct {
	*httptest.Server
	mu     sync.Mutex
	header http.Header
	body   string
	status int
}

func listen(t *testing.T) *listener {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not here")
	}
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

func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestNtfy(t *testing.T) {
	l := listen(t)
	token := secret(t, "tk_mine\n")
	for _, text := range hostile {
		require.NoError(t, tell(t, text, shipped(t, "ntfy.sh")+" "+l.URL+"/topic", "NTFY_TOKEN_FILE="+token), text)
		header, body := l.got()
		assert.Equal(t, "heartbeat: question ", header.Get("Title")+" ")
		assert.Equal(t, "high", header.Get("Priority"))
		assert.Equal(t, "Bearer tk_mine", header.Get("Authorization"))
		assert.Empty(t, header.Get("X-Evil"))
		assert.Contains(t, body, "waits for a person: permission_prompt: ")
	}
	unharmed(t)
}

func TestWebhook(t *testing.T) {
	l := listen(t)
	file := secret(t, l.URL+"/hook?key=secret\nAuthorization: Bearer mine\nX-Other: too\n")
	for _, text := range hostile {
		require.NoError(t, tell(t, text, shipped(t, "webhook.sh")+" "+file), text)
		header, body := l.got()
		assert.Equal(t, "application/json", header.Get("Content-Type"))
		assert.Equal(t, "Bearer mine", header.Get("Authorization"))
		assert.Equal(t, "too", header.Get("X-Other"))
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &o))
		assert.Equal(t, "question", o["what"])
	}
	require.NoError(t, tell(t, "x", shipped(t, "webhook.sh")+" "+secret(t, l.URL)), "without a line break")
	unharmed(t)
}

func TestSlack(t *testing.T) {
	l := listen(t)
	file := secret(t, l.URL+"\n")
	for _, text := range hostile {
		require.NoError(t, tell(t, text, shipped(t, "slack.sh")+" "+file), text)
		_, body := l.got()
		var o map[string]string
		require.NoError(t, json.Unmarshal([]byte(body), &o), body)
		assert.Len(t, o, 1)
		assert.Contains(t, o["text"], "*question* ")
		assert.NotContains(t, o["text"], "<")
		assert.Equal(t, 2, strings.Count(o["text"], "`"))
	}
	unharmed(t)
}

// A server that refuses, or is not there, is a failure with a sentence, and no secret.
func TestServerRefuses(t *testing.T) {
	l := listen(t)
	l.status = http.StatusForbidden
	for _, url := range []string{l.URL + "/hunter2", "http://127.0.0.1:1/hunter2"} {
		for _, command := range []string{shipped(t, "webhook.sh") + " " + secret(t, url), shipped(t, "slack.sh") + " " + secret(t, url)} {
			err := tell(t, "x", command)
			require.ErrorContains(t, err, "it printed curl: (")
			assert.NotContains(t, err.Error(), "hunter2")
		}
	}
	require.ErrorContains(t, tell(t, "x", shipped(t, "slack.sh")+" /nowhere"), "/nowhere")
	require.ErrorContains(t, tell(t, "x", shipped(t, "mail.sh")), "exit status 64")
}

func TestUnitFailed(t *testing.T) {
	dir, path := standIn(t, "sendmail")
	for _, unit := range []string{"heartbeat@mail.service", `a\x2db.service`, "$(touch PWNED).service", `x"},"y.service`} {
		c := exec.Command("./unit-failed.sh", unit, "./mail.sh", "root")
		c.Env = append(os.Environ(), path)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		m, err := mail.ReadMessage(strings.NewReader(kept(t, dir+"/stdin")))
		require.NoError(t, err)
		assert.Len(t, m.Header, 5)
		body, err := io.ReadAll(m.Body)
		require.NoError(t, err)
		_, object, _ := strings.Cut(string(body), "\n{")
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte("{"+object), &o), "%s", body)
		assert.Equal(t, "unit-failed", o["what"])
	}
	unharmed(t)
}

// What a timer meets again every ten minutes is told once a day, until it passes. Other statuses and units are told each
// time, since nothing says of those that they pass.
func TestUnitThatFailsAgain(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho $STATUS\n"), 0o700))
	told := func(unit, status string) int {
		c := exec.Command("./unit-failed.sh", unit, "sh", "-c", "cat; exit $FAILS")
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "STATE_DIRECTORY="+state, "STATUS="+strings.TrimSuffix(status, " fails"), "FAILS=0")
		if strings.HasSuffix(status, " fails") {
			c.Env = append(c.Env, "FAILS=1")
		}
		out, _ := c.Output()
		return strings.Count(string(out), "\n")
	}
	const unit = "heartbeat@mail.service"
	assert.Equal(t, 1, told(unit, "78 fails"))
	assert.Equal(t, 1, told(unit, "78"), "nobody was told before")
	assert.Zero(t, told(unit, "78"))
	assert.Equal(t, 1, told(unit, "1"))
	assert.Equal(t, 1, told("heartbeat@other.service", "78"))
	for range 2 {
		assert.Equal(t, 1, told("heartbeat-supervisor@mail.service", "78"))
	}
	mark, yesterday := filepath.Join(state, unit), time.Now().Add(-25*time.Hour)
	require.NoError(t, os.Chtimes(mark, yesterday, yesterday))
	assert.Equal(t, 1, told(unit, "78"))
	assert.Zero(t, told(unit, "78"))
	service, err := os.ReadFile("../launchers/systemd/heartbeat@.service")
	require.NoError(t, err)
	assert.Contains(t, string(service), "\nExecStartPost=+-/bin/rm -f /var/lib/heartbeat-failed/%n\n", "where StateDirectory= has it")
}

// Each script says what it is for, and systemd finds no fault with the units.
func TestScripts(t *testing.T) {
	all, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	require.Len(t, all, 6)
	for _, script := range all {
		out, _ := exec.Command("./"+script, "--help").Output()
		assert.Contains(t, string(out), "Usage: ", script)
	}
	if check, err := exec.LookPath("shellcheck"); err == nil {
		out, err := exec.Command(check, all...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}

func TestUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	all, err := filepath.Glob("systemd/*")
	require.NoError(t, err)
	require.Len(t, all, 3)
	dir := t.TempDir()
	var paths []string
	for _, path := range all {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		text := strings.NewReplacer("/opt/heartbeat/notify/", here+"/", "/usr/local/bin/heartbeat", "/bin/true").Replace(string(raw))
		path = filepath.Join(dir, filepath.Base(path))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	out, err := exec.Command(analyze, append([]string{"verify"}, paths...)...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}
