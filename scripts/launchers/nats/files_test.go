package nats_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/verbs"
)

// compose is what the test needs to know of the file.
type compose struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment any
		Volumes     []string
	}
	Volumes map[string]any
}

func readCompose(t *testing.T) (c compose) {
	raw, err := os.ReadFile("compose.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &c))
	return c
}

func read(t *testing.T, path string) string {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// The server gets each password that its configuration asks for.
func TestTheServerInAContainer(t *testing.T) {
	c := readCompose(t)
	var wanted []any
	for _, m := range regexp.MustCompile(`password: \$(\w+)`).FindAllStringSubmatch(read(t, "nats-server.conf"), -1) {
		wanted = append(wanted, m[1])
	}
	require.Len(t, wanted, 4)
	assert.ElementsMatch(t, wanted, c.Services["nats"].Environment)
	assert.Contains(t, c.Services["nats"].Volumes, "nats:/var/lib/nats")
	assert.Contains(t, read(t, "nats-server.conf"), `store_dir: "/var/lib/nats"`)
	assert.Contains(t, read(t, "nats-server.conf"), "sync_interval: always")
	assert.Regexp(t, `^nats:\d+\.\d+\.\d+`, c.Services["nats"].Image)
}

// What containers and units call takes the flags that they give.
func TestCommandsTakeTheirFlags(t *testing.T) {
	c := readCompose(t)
	for name, user := range map[string]string{"setup": "operator", "one": "one", "two": "two"} {
		s := c.Services[name]
		parses(t, s.Command)
		address := s.Environment.(map[string]any)["NATS_URL"].(string)
		assert.True(t, strings.HasPrefix(address, "nats://"+user+":"), address)
		if name != "setup" {
			assert.Subset(t, s.Command, []string{"--name", name})
			assert.Contains(t, c.Volumes, name)
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(read(t, "heartbeat-nats@.service"))[1]
	line := strings.NewReplacer("$NATS_FLAGS", "--subject work.review", `"Read CLAUDE.md"`, "Read", "/usr/local/bin/", "").Replace(start)
	parses(t, strings.Fields(line))

	inbox := regexp.MustCompile(`--inbox (\S+)/inbox.jsonl`).FindStringSubmatch(start)[1]
	assert.Regexp(t, `#.* mkdir -p .*`+strings.ReplaceAll(inbox, "%i", "one"), read(t, "heartbeat-nats@.service"), "who sets it up makes its folder")
}

func parses(t *testing.T, words []string) {
	t.Helper()
	require.Equal(t, "heartbeat-nats", words[0])
	for _, g := range verbs.Command().Groups {
		for _, v := range g.Verbs {
			if v.Name == words[1] {
				flags := cli.NewFlags(v.Name)
				v.Build(flags)
				require.NoError(t, flags.Parse(words[2:]), "%q", words)
				return
			}
		}
	}
	require.Fail(t, "no such verb", "%q", words)
}

// systemd finds no fault with the units.
func TestUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"nats-server.service", "heartbeat-nats@.service"} {
		path := filepath.Join(dir, name)
		here := regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAllString(read(t, name), "/bin/true")
		require.NoError(t, os.WriteFile(path, []byte(here), 0o600))
		units = append(units, path)
	}
	out, err := exec.Command(analyze, append([]string{"verify"}, units...)...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}

// An agent may reach what agents without a stream may.
func TestTheAgentIsHardenedAlike(t *testing.T) {
	here := strings.Split(read(t, "heartbeat-nats@.service"), "\n")
	hardening := false
	for line := range strings.Lines(read(t, "../systemd/heartbeat@.service")) {
		line = strings.TrimSuffix(line, "\n")
		hardening = hardening || line == "NoNewPrivileges=yes"
		if hardening && line != "" && !strings.HasPrefix(line, "#") {
			assert.True(t, slices.Contains(here, line), line)
		}
	}
	assert.True(t, hardening)
}

// What the units say to enable starts again with the machine.
func TestWhatIsEnabledCanBe(t *testing.T) {
	units, err := filepath.Glob("../*/*.service")
	require.NoError(t, err)
	enabled := 0
	for _, unit := range units {
		for _, m := range regexp.MustCompile(`enable --now ([a-z-]+@?)\w*(\.timer)?`).FindAllStringSubmatch(read(t, unit), -1) {
			named, err := filepath.Glob("../*/" + m[1] + cmp.Or(m[2], ".service"))
			require.NoError(t, err)
			require.Len(t, named, 1, m[0])
			assert.Contains(t, read(t, named[0]), "\n[Install]\nWantedBy=", named[0])
			enabled++
		}
	}
	assert.NotZero(t, enabled)
}
