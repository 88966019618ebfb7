package command

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"heartbeat/internal/cli"
)

const (
	// callersVariable lists the processes that became such a command and that this
	// process descends from. It ends a command that calls itself through heartbeat.
	callersVariable = "HEARTBEAT_CALLERS"
	maxCallers      = 32
)

// externalName matches what may follow heartbeat- in the name of a command. A path does not.
var externalName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// ourExternals describes the commands that are part of heartbeat.
var ourExternals = map[string]string{
	"host":   "host sessions for a program that may restart at any time",
	"launch": "run sessions where nobody is at the terminal",
	"mcp":    "the inbox as tools of the Model Context Protocol",
	"nats":   "many agents on many machines, one message answered once",
	"stop":   "the Stop hook, which Claude Code calls",
	"watch":  "watch inboxes in a terminal, and steer them",
}

func externalNames() []string { return slices.Sorted(maps.Keys(ourExternals)) }

// runExternal replaces this process with heartbeat-NAME, found beside it or on PATH.
func runExternal(name string, args []string, list []cli.Verb, s cli.Streams) int {
	path, err := findExternal(name, list)
	if err == nil {
		err = become(path, args)
	}
	s.Complain(err)
	return cli.ExitError
}

func findExternal(name string, list []cli.Verb) (string, error) {
	if externalName.MatchString(name) {
		for i, dir := range externalDirs() {
			path, err := exec.LookPath(filepath.Join(dir, commandName+"-"+name))
			if err == nil && (i > 0 || cli.IsOursBeside(path)) {
				return path, nil
			}
		}
		if ourExternals[name] != "" {
			return cli.Beside(commandName + "-" + name) // it says what is missing
		}
	}
	known := slices.Concat(cli.Names(list), externals(list))
	return "", fmt.Errorf("%w (see heartbeat help)", cli.UnknownVerb(name, known))
}

// become replaces this process with the program. It returns only if that fails.
func become(path string, args []string) error {
	callers := liveCallers()
	if len(callers) >= maxCallers {
		return fmt.Errorf("run %s: %d commands that heartbeat started are running inside each other: one seems to call itself", path, len(callers))
	}
	callers = append(callers, strconv.Itoa(os.Getpid()))
	if err := os.Setenv(callersVariable, strings.Join(callers, " ")); err != nil {
		return err
	}
	if err := syscall.Exec(path, slices.Concat([]string{path}, args), os.Environ()); err != nil {
		if errors.Is(err, syscall.ENOEXEC) {
			err = fmt.Errorf("%w: a script needs a first line that names its interpreter, such as #!/bin/sh", err)
		}
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// liveCallers leaves out the processes that have ended. A background session that
// starts its own successor, again and again, never runs into the limit.
func liveCallers() []string {
	return slices.DeleteFunc(strings.Fields(os.Getenv(callersVariable)), func(word string) bool {
		pid, err := strconv.Atoi(word)
		return err != nil || pid < 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// externals returns the names X of the commands heartbeat-X that can be run, sorted. It
// leaves out those that a verb hides.
func externals(list []cli.Verb) []string {
	found := map[string]bool{}
	for i, dir := range externalDirs() {
		paths, _ := filepath.Glob(filepath.Join(escapeGlob(dir), commandName+"-*")) // it fails only for a bad pattern
		for _, path := range paths {
			name := strings.TrimPrefix(filepath.Base(path), commandName+"-")
			if _, ours := cli.Find(list, name); !ours && externalName.MatchString(name) && isProgram(path) && (i > 0 || cli.IsOursBeside(path)) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// externalDirs returns the folders to search for such commands, first that of the running
// command. It leaves out relative folders of PATH: what they hold depends on where one
// happens to be.
func externalDirs() (dirs []string) {
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&fs.ModePerm&0o111 != 0
}

func externalItems() (items []cli.Item) {
	for _, name := range externals(verbs()) {
		items = append(items, cli.Item{Name: name, What: ourExternals[name]})
	}
	return items
}
