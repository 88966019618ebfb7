package packaging_test

import (
	"io/fs"
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
)

// release is what these tests read of .goreleaser.yaml.
type release struct {
	Builds []struct {
		Main, Binary               string
		Env, Goos, Goarch, Ldflags []string
	}
	Archives []struct {
		IDs   []string
		Files []struct{ Src, Dst string }
	}
	Nfpms []struct {
		IDs         []string
		PackageName string `yaml:"package_name"`
		Formats     []string
		Scripts     map[string]string
		Contents    []struct{ Src, Dst, Type, Packager string }
	}
	Casks []struct{ Binaries []string } `yaml:"homebrew_casks"`
}

func read(t *testing.T) (r release) {
	t.Helper()
	raw, err := os.ReadFile("../.goreleaser.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &r))
	return r
}

// The layout that packaging/stage makes.
func TestStaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "staged")
	out, err := exec.Command("./stage", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Run("files", func(t *testing.T) { everyFileIsThere(t, dir) })
	t.Run("units", func(t *testing.T) { unitsOfAPackage(t, dir) })
	t.Run("paths", func(t *testing.T) { pathsOfAPackage(t, dir) })
}

// A release has every command, for each system that heartbeat runs on, static and with the
// version that it says it is of.
func TestEveryCommandIsBuilt(t *testing.T) {
	folders, err := filepath.Glob("../cmd/*")
	require.NoError(t, err)
	var commands []string
	for _, b := range read(t).Builds {
		commands = append(commands, filepath.Join("..", "cmd", b.Binary))
		assert.Equal(t, "./cmd/"+b.Binary, b.Main)
		assert.Equal(t, []string{"linux", "darwin"}, b.Goos)
		assert.Equal(t, []string{"amd64", "arm64"}, b.Goarch)
		assert.Equal(t, []string{"CGO_ENABLED=0"}, b.Env)
		assert.Contains(t, strings.Join(b.Ldflags, " "), "-X heartbeat/internal/cli.version=")
	}
	slices.Sort(commands)
	assert.Equal(t, folders, commands)
}

// The linker says nothing about a variable that it does not find.
func TestTheVersionIsStamped(t *testing.T) {
	command := filepath.Join(t.TempDir(), "heartbeat-stop")
	out, err := exec.Command("go", "build", "-ldflags", "-X heartbeat/internal/cli.version=1.2.3", "-o", command, "../cmd/heartbeat-stop").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(command, "--version").Output()
	require.NoError(t, err)
	assert.Regexp(t, `^heartbeat-stop 1\.2\.3 `, string(out))
}

// What the release names is there, and what is staged is in it.
func everyFileIsThere(t *testing.T, dir string) {
	r := read(t)
	here := func(src string) string {
		if rest, ok := strings.CutPrefix(src, "packaging/staged/"); ok {
			return filepath.Join(dir, rest)
		}
		return filepath.Join("..", src)
	}
	named := map[string]bool{}
	exists := func(src string) {
		found, err := filepath.Glob(here(src))
		require.NoError(t, err)
		assert.NotEmpty(t, found, src)
		parts := strings.Split(strings.TrimPrefix(src, "packaging/staged/"), "/")
		named[filepath.Join(parts[:min(2, len(parts))]...)] = true
	}
	for _, a := range r.Archives {
		for _, f := range a.Files {
			exists(f.Src)
		}
	}
	for _, p := range r.Nfpms {
		for _, c := range p.Contents {
			switch c.Type {
			case "dir":
			case "symlink":
				assert.Equal(t, "/usr/bin", filepath.Dir(c.Dst))
				assert.Contains(t, p.IDs, c.Src, "%s is a link to nothing", c.Dst)
			default:
				exists(c.Src)
			}
		}
		for _, script := range p.Scripts {
			assert.FileExists(t, here(script))
			named[strings.TrimPrefix(script, "packaging/staged/")] = true
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	for _, path := range all {
		entry, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		assert.True(t, named[entry], "%s is staged for nothing", entry)
	}
}

// Each command is in one archive, one package and one cask, the same for all three.
func TestEveryCommandIsInOnePackage(t *testing.T) {
	r := read(t)
	want := [][]string{{"heartbeat", "heartbeat-stop", "heartbeat-launch"}, {"heartbeat-host"}, {"heartbeat-nats"}}
	require.Len(t, r.Archives, len(want))
	require.Len(t, r.Nfpms, len(want))
	require.Len(t, r.Casks, len(want))
	for i, commands := range want {
		assert.Equal(t, commands, r.Archives[i].IDs)
		assert.Equal(t, commands, r.Nfpms[i].IDs)
		assert.Equal(t, commands, r.Casks[i].Binaries)
		assert.Equal(t, []string{"deb", "rpm"}, r.Nfpms[i].Formats)
		assert.True(t, strings.HasPrefix(r.Nfpms[i].PackageName, "heartbeat-inbox"))
	}
}

// The units of a package call its own commands, and its removal knows each of them.
func unitsOfAPackage(t *testing.T, dir string) {
	units, err := filepath.Glob(filepath.Join(dir, "*", "systemd", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, units)
	for _, unit := range units {
		removal, err := os.ReadFile(filepath.Join(filepath.Dir(unit), "..", "preremove.sh"))
		require.NoError(t, err)
		raw, err := os.ReadFile(unit)
		require.NoError(t, err)
		for _, command := range regexp.MustCompile(`(?m)^Exec\w+=-?(\S*heartbeat\S*)`).FindAllStringSubmatch(string(raw), -1) {
			assert.Regexp(t, `^/usr/bin/heartbeat(-[a-z]+)?$`, command[1], unit)
		}
		assert.Contains(t, string(removal), filepath.Base(unit))
	}
}

// What a package brings names its own files, where the package puts them.
func pathsOfAPackage(t *testing.T, dir string) {
	texts, err := filepath.Glob(filepath.Join(dir, "*", "systemd", "*"))
	require.NoError(t, err)
	packaged := filepath.Join(dir, "core", "packaged")
	require.NoError(t, filepath.WalkDir(packaged, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			texts = append(texts, path)
		}
		return err
	}))
	named := 0
	for _, path := range texts {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotRegexp(t, `/opt/heartbeat|/usr/local/bin/heartbeat`, string(raw), path)
		for _, m := range regexp.MustCompile(`/usr/share/heartbeat/(\S+\.sh)`).FindAllStringSubmatch(string(raw), -1) {
			named++
			assert.FileExists(t, filepath.Join(packaged, m[1]), path)
		}
	}
	assert.NotZero(t, named)
}

// removal runs the script of a removal with a folder in the place of /etc/systemd/system.
func removal(t *testing.T, units, reason string) {
	t.Helper()
	raw, err := os.ReadFile("preremove.sh")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(raw), "/etc/systemd/system", units)
	text = strings.ReplaceAll(text, "UNITS_OF_THE_PACKAGE", "heartbeat@.timer heartbeat@.service")
	text = strings.ReplaceAll(text, "/run/systemd/system", filepath.Join(units, "no-systemd-runs"))
	out, err := exec.Command("sh", "-c", text, "preremove", reason).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Removing disables what a person enabled, and touches nobody else's.
func TestRemovalDisablesItsUnits(t *testing.T) {
	dir := t.TempDir()
	wants := filepath.Join(dir, "timers.target.wants")
	require.NoError(t, os.Mkdir(wants, 0o700))
	ours, theirs := filepath.Join(wants, "heartbeat@mail.timer"), filepath.Join(wants, "heartbeat.service")
	require.NoError(t, os.Symlink("/usr/lib/systemd/system/heartbeat@.timer", ours))
	require.NoError(t, os.Symlink("/usr/lib/systemd/system/heartbeat.service", theirs))
	for _, reason := range []string{"upgrade", "1"} {
		removal(t, dir, reason)
		_, err := os.Lstat(ours)
		require.NoError(t, err, "an upgrade keeps what is enabled")
	}
	for _, reason := range []string{"remove", "0"} {
		for _, installed := range []string{"/usr/lib", "/lib"} { // Debian 12 names the link
			_ = os.Remove(ours)
			require.NoError(t, os.Symlink(installed+"/systemd/system/heartbeat@.timer", ours))
			removal(t, dir, reason)
			_, err := os.Lstat(ours)
			require.ErrorIs(t, err, os.ErrNotExist)
			_, err = os.Lstat(theirs)
			require.NoError(t, err)
		}
	}
}

// Removing stops what a person has only started.
func TestRemovalStopsItsUnits(t *testing.T) {
	dir := t.TempDir()
	stopped := filepath.Join(dir, "stopped")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho \"$*\" >>"+stopped+"\n"), 0o700))
	raw, err := os.ReadFile("preremove.sh")
	require.NoError(t, err)
	text := strings.NewReplacer("/etc/systemd/system", dir, "/run/systemd/system", dir,
		"UNITS_OF_THE_PACKAGE", "heartbeat-watch.service heartbeat-watch.timer heartbeat@.service heartbeat@.timer").Replace(string(raw))
	cmd := exec.Command("sh", "-c", text, "preremove", "remove")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said, err := os.ReadFile(stopped)
	require.NoError(t, err)
	assert.Equal(t, "stop heartbeat-watch.timer\nstop heartbeat@*.timer\nstop heartbeat-watch.service\nstop heartbeat@*.service\n", string(said))
}

// The image has the client that the tests run, and copies what is there.
func TestImage(t *testing.T) {
	image, err := os.ReadFile("Containerfile")
	require.NoError(t, err)
	ci, err := os.ReadFile("../.ci/run")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^claude_version=(.*)$`).FindSubmatch(ci)
	require.NotNil(t, version)
	assert.Contains(t, string(image), "\nARG CLAUDE_VERSION="+string(version[1])+"\n")
	copies := regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllSubmatch(image, -1)
	require.NotEmpty(t, copies)
	for _, c := range copies {
		for _, src := range strings.Fields(string(c[1])) {
			_, err := os.Stat(filepath.Join("..", src))
			assert.NoError(t, err)
		}
	}
}
