package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise/terminal"
)

// taken are the signals of this process, for as long as it lives.
var taken = sync.OnceValue(signals.Catch)

// optionsFor are options for a command at this process's streams.
func optionsFor(command ...string) terminal.Options {
	return terminal.Options{
		Command: command, Dir: ".", Env: os.Environ(), Size: terminal.DefaultSize, Grace: time.Second,
		Streams:  terminal.Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Console: terminal.NewConsole(os.Stdout)},
		Signals:  taken(),
		Watchers: terminal.Watchers{Note: func(string, ...any) {}},
	}
}

// panicking runs a command that does not end by itself, and panics meanwhile: in the loop
// or beside it, as its argument says.
func panicking() {
	o := optionsFor("sh", "-c", "echo $$ > pid; echo begun; exec sleep 1000")
	switch os.Args[1] {
	case "loop":
		o.Idle = terminal.Idle{Timeout: time.Second / 2, Retries: 1, Busy: func() bool { panic("made up") }}
	case "beside": // the writer to stdout calls Note
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		o.Stdout, o.Console, o.Note = full, nil, func(string, ...any) { panic("made up") }
	}
	defer func() {
		if p := recover(); p != nil {
			fmt.Println("panic:", p)
		}
	}()
	_, err := terminal.Run(o)
	fmt.Println(err)
}

// sessions runs that many sessions one after the other in this one process, each with
// something to clean up. It fails if one leaves more than the first did.
// With the argument read each prints a line that it reads, with hangup each hangs up on
// itself.
func sessions() {
	guardian.Serve()
	n, err := strconv.Atoi(os.Args[1])
	text := "setsid -f sleep 1000; echo "
	if len(os.Args) > 2 {
		text = map[string]string{
			"read":   "setsid -f sleep 1000; echo ready; read line; echo $line, ",
			"hangup": "kill -HUP $$; echo ignores it ",
		}[os.Args[2]]
	}
	for i := 0; err == nil && i < n; i++ {
		o := optionsFor("sh", "-c", text+strconv.Itoa(i))
		o.ExitSignal = "stop"
		if _, err = terminal.Run(o); err == nil {
			err = compare(i)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var first map[string]int

func compare(round int) error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	children, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	now := map[string]int{"files": len(fds), "children": len(children)}
	if first == nil {
		first = now
	}
	for what, n := range now {
		if n > first[what] {
			return fmt.Errorf("round %d: %d %s, after the first there were %d", round, n, what, first[what])
		}
	}
	// What has just ended may be there for another moment.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > 20 || threads() > 40; runtime.Gosched() {
		if time.Now().After(end) {
			return errors.Join(err, fmt.Errorf("round %d: %d goroutines, %d threads", round, runtime.NumGoroutine(), threads()))
		}
	}
	return err
}

func threads() int {
	all, _ := os.ReadDir("/proc/self/task") // it was there for the files
	return len(all)
}

// watched prints all that a session tells its caller. The session has no stdout, and is
// ended once it has said "bye".
func watched() {
	text := "echo hello; echo bye; exec sleep 1000"
	if len(os.Args) > 1 {
		text = "echo hello; read line; echo bye; exec sleep 1000"
	}
	o := optionsFor("sh", "-c", text)
	o.Stdout = nil
	quit, pid, saw := make(chan struct{}), 0, ""
	o.Quit = quit
	o.Started = func(p int) { pid = p; fmt.Print("started\r\n") }
	o.Resized = func(s terminal.Size) { fmt.Printf("size %v\r\n", &s) }
	o.Watch = func(b []byte) {
		before := strings.Contains(saw, "bye")
		saw += string(b)
		if !before && strings.Contains(saw, "bye") {
			close(quit)
		}
	}
	outcome, err := terminal.Run(o)
	fmt.Printf("saw %q, quit: %v, error: %v\n", saw, outcome.Cause == terminal.Quit, err)
	fmt.Println("lives:", syscall.Kill(pid, 0) == nil)
}
