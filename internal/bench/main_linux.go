// Command bench measures heartbeat's commands as whole processes, each in turn with what
// it is compared with, and prints a Markdown table for each measure. It needs Linux.
//
//	go run ./internal/bench                  a few minutes
//	go run ./internal/bench -quick           some seconds, for a first look
//	go run ./internal/bench -full            also what takes many minutes
//	go run ./internal/bench -only tick -sync 1ms     one, where each sync takes a millisecond longer
//
// Everything that is measured is also verified. The exit status is 1 if something was
// wrong or could not be measured. A table says if a target was missed; that is no error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// measure is one measurement. docs/benchmarks.md says how each is taken.
type measure struct {
	name, title string
	long        bool // only taken when asked for
	take        func(*rig, *table)
}

var measures = []measure{
	{"size", "Size of the binary", false, size},
	{"start", "Start-up", false, start},
	{"tick", "One tick", false, tick},
	{"codex", "One tick of Codex", false, codex},
	{"bigfile", "A big inbox", false, bigfile},
	{"send", "Sending", false, send},
	{"persist", "Waiting for an entry", false, persist},
	{"rewake", "Waiting in the background", false, rewake},
	{"launch", "A terminal of its own", false, launch},
	{"host", "A host of a session", false, host},
	{"run", "A stop decision about a run", true, orchestrated},
	{"million", "A long queue", true, million},
	{"drain", "A long drain", true, drain},
}

// sizes is how much of everything to do: usually, with -quick, and in this program's tests.
var sizes = map[string][3]int{
	"pairs": {400, 50, 3}, "alone": {200, 20, 10}, "rounds": {40, 4, 2}, "big": {488_282, 62_500, 40}, // lines
	"sends": {10_000, 400, 80}, "waits": {200, 20, 2}, "asleep": {60_000, 6_000, 50}, "calm": {2_000, 2_000, 100}, // milliseconds
	"floods": {5, 1, 1}, "flood": {200_000_000, 50_000_000, 1_000_000}, // bytes
	"hosts": {15, 2, 1}, "stops": {30, 3, 1}, "events": {10_000, 10_000, 100},
	"million": {1_000_000, 50_000, 5_000}, "looks": {9, 3, 1}, "drain": {100_000, 1_000, 30},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var names []string
	for _, m := range measures {
		names = append(names, m.name)
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	quick := f.Bool("quick", false, "few runs of everything, to see that it works")
	full := f.Bool("full", false, "take the long measures besides")
	only := f.String("only", "", "the one measure to take: "+strings.Join(names, ", "))
	dir := f.String("dir", os.TempDir(), "`directory` on the file system to measure on")
	sync := f.Duration("sync", 0, "how much longer each sync of what is measured takes, to stand for another disk")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if *only != "" && !slices.Contains(names, *only) {
		return fmt.Errorf("-only %q: it is one of %s", *only, strings.Join(names, ", "))
	}
	bin, err := build(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	if *sync > 0 {
		if err := slowSyncs(*sync); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "Each sync takes %v longer than this disk needs.\n", *sync)
	}
	fmt.Fprintln(stdout, machine(ctx, *dir))
	var failed error
	for _, m := range measures {
		if ctx.Err() != nil || *only != "" && *only != m.name || *only == "" && m.long && !*full {
			continue
		}
		fmt.Fprintf(stderr, "bench: %s ...\n", m.name)
		r := &rig{ctx: ctx, bin: bin, sync: *sync, log: stderr}
		if *quick {
			r.level = 1
		}
		t, err := r.take(m, *dir)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		fmt.Fprintf(stdout, "\n%s", t)
	}
	return errors.Join(failed, ctx.Err())
}

// build makes the programs in a temporary directory of their own, since the scratch
// directory may be on a file system without exec. It copies them, as installing does:
// the pages that the linker wrote stay in the page cache in small pieces, from which a
// big program starts a tenth slower.
func build(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "heartbeat-bench-bin-")
	if err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	linked := filepath.Join(dir, "linked")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", linked+string(filepath.Separator), "heartbeat/cmd/...", "heartbeat/internal/bench/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(linked))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("build: %w: %s", err, out), os.RemoveAll(dir))
	}
	return dir, os.RemoveAll(linked)
}

// machine is the line that says what was measured, and where. What the system does not
// tell stays empty.
func machine(ctx context.Context, dir string) string {
	ask := func(argv ...string) string {
		out, _ := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		return strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("Machine: %s, %d cores, %s, %s (scratch directory), %s; load %s before the run. heartbeat of commit %s.",
		ask("sed", "-n", `s/^model name\s*: //p;T;q`, "/proc/cpuinfo"), runtime.NumCPU(), ask("uname", "-sr"), fileSystem(dir), runtime.Version(),
		ask("cut", "-d ", "-f1", "/proc/loadavg"), ask("git", "describe", "--always", "--dirty", "--abbrev=12"))
}

func fileSystem(dir string) string {
	out, _ := exec.Command("findmnt", "-no", "FSTYPE", "-T", dir).Output() // unknown without it
	return strings.TrimSpace(string(out))
}
