package action_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"encoding/pem"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onMachine is the PATH of a machine that has neither heartbeat nor the client, but programs in
// a folder of the test.
func onMachine(t *testing.T, j *job) (programs string) {
	t.Helper()
	programs = t.TempDir()
	j.Env[0] = "PATH=" + programs + ":/usr/bin:/bin"
	for _, name := range []string{"heartbeat", "claude", "go"} {
		for _, dir := range []string{"/usr/bin", "/bin"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Skipf("%s is in %s", name, dir)
			}
		}
	}
	return programs
}

func withClient(t *testing.T, programs string) {
	t.Helper()
	require.NoError(t, os.Symlink(filepath.Join(bin, "claude"), filepath.Join(programs, "claude")))
}

// releases serves a release of these commands, and of a damaged archive.
func releases(t *testing.T, j *job) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	name := "heartbeat_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	for _, version := range []string{"v1.2.3", "v1.2.4"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version, "in", name), 0o700))
	}
	script := `cd "$1/v1.2.3" && cp -L "$2"/heartbeat "$2"/heartbeat-stop "$2"/heartbeat-launch in/$3/ && tar -czf $3.tar.gz -C in $3 &&
		sha256sum $3.tar.gz >SHA256SUMS && sed 's/1[.]2[.]3/1.2.4/' SHA256SUMS >../v1.2.4/SHA256SUMS && echo damaged >../v1.2.4/$(echo $3 | sed 's/1[.]2[.]3/1.2.4/').tar.gz`
	out, err := exec.Command("sh", "-c", script, "sh", dir, bin, name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := httptest.NewTLSServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	authority := filepath.Join(dir, "authority.pem")
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, raw, 0o600))
	j.Env = append(j.Env, "CURL_CA_BUNDLE="+authority, "HEARTBEAT_DOWNLOADS="+server.URL)
	return server
}

// A release counts once its sum is right. The action's own tag names one, too.
func TestRelease(t *testing.T) {
	j := newJob(t)
	withClient(t, onMachine(t, j))
	releases(t, j)
	u := j.use("prompt=hello", "version=v1.2.3")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "answered", u.Outputs["outcome"])
	j.Ref = "v1.2.3"
	require.Zero(t, j.use("prompt=hello again").Status)

	for with, says := range map[string]string{
		"version=1.2.4":                     "nothing was installed",
		"sha256=" + strings.Repeat("0", 64): "if sha256 is yours, is it that of this system's archive?",
		"version=9.9.9":                     "cannot be had",
	} {
		u := j.use("prompt=hi", with)
		assert.Equal(t, 1, u.Status, u.Log)
		assert.Equal(t, "install", u.Failed)
		assert.Contains(t, u.Log, says)
		assert.NoFileExists(t, filepath.Join(j.Temp, "heartbeat", "bin", "heartbeat"))
	}
	assert.Zero(t, j.asked("hi"))
}

// Without a version, the checkout of the action is built; or what is missing is named.
func TestBuild(t *testing.T) {
	j := newJob(t)
	programs := onMachine(t, j)
	withClient(t, programs)
	u := j.use("prompt=hello")
	assert.Equal(t, 78, u.Status)
	assert.Contains(t, u.Log, "actions/setup-go")

	where, err := exec.LookPath("go")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(where, filepath.Join(programs, "go")))
	u = j.use("prompt=hello")
	require.Zero(t, u.Status, u.Log)
	assert.FileExists(t, filepath.Join(j.Temp, "heartbeat", "bin", "heartbeat-stop"))
}

// The client comes by its whole version, and runs no script of the package.
func TestClientIsInstalled(t *testing.T) {
	j := newJob(t)
	programs := onMachine(t, j)
	for _, name := range []string{"heartbeat", "heartbeat-stop", "heartbeat-launch"} {
		require.NoError(t, os.Symlink(filepath.Join(bin, name), filepath.Join(programs, name)))
	}
	npm := "#!/bin/sh\necho \"$*\" >\"" + programs + "/npm.args\"\nwhile [ \"$1\" != --prefix ]; do shift; done\n" +
		"to=$2/node_modules/${3%@*}\nmkdir -p \"$to\" && ln -sf \"" + filepath.Join(bin, "claude") + "\" \"$to/claude\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "npm"), []byte(npm), 0o700))
	u := j.use("prompt=hello")
	require.Zero(t, u.Status, u.Log)
	args, err := os.ReadFile(filepath.Join(programs, "npm.args"))
	require.NoError(t, err)
	assert.Regexp(t, `^install .*--ignore-scripts .* @anthropic-ai/claude-code-\w+-\w+@\d+\.\d+\.\d+\n$`, string(args))

	u = j.use("prompt=hi", "client-version=latest")
	assert.Equal(t, 1, u.Status)
	assert.Contains(t, u.Log, "latest is no version")
	require.NoError(t, os.WriteFile(filepath.Join(programs, "npm"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	u = j.use("prompt=hi")
	assert.Equal(t, 75, u.Status)
	assert.Zero(t, j.asked("hi"))
}

// The questions of the client's first start are answered for this folder and this key, in a
// folder that is not the person's own.
func TestFirstStart(t *testing.T) {
	j := newJob(t)
	require.Zero(t, j.use("prompt=hello").Status)
	found, err := filepath.Glob(filepath.Join(j.Temp, "heartbeat", "*", "client", ".claude.json"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	raw, err := os.ReadFile(found[0])
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"hasCompletedOnboarding": true, "theme": "dark",
		"customApiKeyResponses": {"approved": ["`+key[len(key)-20:]+`"], "rejected": []},
		"projects": {"`+j.Checkout+`": {"hasTrustDialogAccepted": true}}
	}`, string(raw))
	started, err := os.ReadFile(filepath.Join(j.Checkout, "started"))
	require.NoError(t, err)
	assert.Contains(t, string(started), "\nCLAUDE_CONFIG_DIR="+filepath.Dir(found[0]))
}
