package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"heartbeat/internal/consumer"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/notify"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the launcher, and some commands to run in its terminal,
// where a script runs it by their name.
func TestMain(m *testing.M) {
	script.Main(prepared{m}, map[string]func(){
		"heartbeat-launch":           Main,
		"claude":                     claudeStandIn,
		"codex":                      codexStandIn,
		"dialog":                     dialog,
		guardian.Name:                Main,
		notify.HelperName:            Main,
		notify.HelperName + "-start": Main,

		consumer.HelperName:            Main,
		consumer.HelperName + "-start": Main,
		"flood":                        flood,
		"panicking":                    panicking,
		"sessions":                     sessions,
		"scene":                        scene,
		"watched":                      watched,
	})
}

// prepared are the tests with our commands on PATH, and without CI: the launcher says that
// it takes that out.
type prepared struct{ *testing.M }

func (m prepared) Run() int {
	remove, err := commandsOnPath()
	if err == nil {
		defer remove()
		err = os.Unsetenv("CI")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

// flood prints that many megabytes of lines, and then a last one. Its status says whether
// it could.
func flood() {
	megabytes, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	block := strings.Repeat(strings.Repeat("x", 1022)+"\r\n", 64)
	for range megabytes * 16 {
		if _, err := os.Stdout.WriteString(block); err != nil {
			os.Exit(1)
		}
	}
	if len(os.Args) > 2 {
		if err := os.WriteFile(os.Args[2], nil, 0o600); err != nil {
			os.Exit(1)
		}
	}
	fmt.Print("the end\r\n")
}
