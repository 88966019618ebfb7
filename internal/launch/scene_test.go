package launch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// scenes are what a client sets at its terminal.
var scenes = []string{
	"\x1b[?1049h", "\x1b[?25l", "\x1b[?2004h", "\x1b[?1004h", "\x1b[?1000;1006h", "\x1b[?1003h", "\x1b[?1h\x1b=", "\x1b[>1u", "\x1b[>4;2m",
	"\x1b[2;5r", "\x1b[31m", "\x1b[?2026h", "\x1b[4h", "\x1b[?7l", "\x1b(0", "\x1b]9;4;3;0\x07", "\x1b]0;half a title",
}

// scene is a client that sets its terminal as its seed says, and never sets it back. It keeps
// what is typed in a file, and exits with 1 or 0 at the signals USR1 and USR2.
func scene() {
	seed, _ := strconv.ParseUint(os.Args[1], 10, 64)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGUSR2)
	_, err := term.MakeRaw(0)
	got, failed := os.Create("got")
	if err != nil || failed != nil {
		os.Exit(3)
	}
	note("pid", strconv.Itoa(os.Getpid()))
	note("mark", os.Getenv("HEARTBEAT_SESSION"))
	random := rand.New(rand.NewPCG(seed, 1))
	var set strings.Builder
	for _, s := range scenes {
		if random.IntN(2) == 0 {
			set.WriteString(s)
		}
	}
	fmt.Print("begun\r\n" + set.String())
	go func() {
		if sig := <-told; sig == syscall.SIGUSR1 {
			os.Exit(1)
		}
		os.Exit(0)
	}()
	keys := make([]byte, 1024)
	for {
		n, err := os.Stdin.Read(keys)
		if err != nil {
			return
		}
		_, _ = got.Write(keys[:n]) // the test sees it
		fmt.Print(".")
	}
}
