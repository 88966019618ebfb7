package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
)

// home is the variable that names a world's directory to its client.
const home = "SOAK_HOME"

// What the client leaves and finds in that directory.
const (
	askedFile = "asked"  // a line for each turn
	pidFile   = "client" // the process of the last client
	crashFile = "crash"  // clients that find it crash at their start
)

var (
	commands string
	task     = regexp.MustCompile(`entry-[0-9]+`)
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(home); dir != "" && filepath.Base(os.Args[0]) == "claude" {
		client(dir)
	}
	build.Main(m, &commands)
}

// client is a stand-in for Claude Code whose turns take a moment.
func client(dir string) {
	if _, err := os.Lstat(filepath.Join(dir, crashFile)); err == nil {
		fmt.Println("Error: half of an update is here")
		os.Exit(1)
	}
	_ = os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600)
	os.Exit(agent.InTerminal(os.Args[1:], func(text string) string {
		id := task.FindString(text) // a text that wakes has more around it
		f, err := os.OpenFile(filepath.Join(dir, askedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, id)
			_ = f.Close() // written or not
		}
		if err != nil {
			return err.Error() // which is not the answer
		}
		time.Sleep(30 * time.Millisecond) // the work
		return "did " + id
	}))
}
