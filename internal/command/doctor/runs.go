package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

// runs looks at the runs that the inbox drives, as a step would.
func runs(e *examination) string {
	if e.box == nil {
		return "" // another check reports it
	}
	driven, strange, _ := e.Driven(e.box) // the checks of the directory report the error
	for _, name := range strange {
		e.warn("remove it; or name the run's directory with --run, and a step writes it anew",
			"%s was not made by way of this inbox (an older version, a copy, a repository), so nothing is taken from it", name)
	}
	var read []string
	for _, d := range driven {
		r, err := run.Open(d.Dir)
		if err == nil {
			_, err = r.State()
		}
		switch {
		case errors.Is(err, run.ErrCorrupt):
			repair := quote("heartbeat", "orchestrate", "--inbox", e.inbox, "--run", d.Dir, "--repair", "--once")
			e.fail(repair+" (it drops what cannot be read, and keeps the old journal)", "%v", err)
		case err != nil:
			e.fail("see whether "+d.Dir+" is there and readable", "%v", err)
		default:
			read = append(read, e.show(d.Dir))
		}
	}
	if len(read) == 0 {
		return ""
	}
	return strings.Join(read, ", ") + " can be read; each step runs the code that it names, as you"
}

// babysitterWait is how long each command may take to print its version. npx may have to fetch it first.
const babysitterWait = 90 * time.Second

// babysitters asks each command that drives runs of the inbox for its version. Runs that no hook drives are assumed
// to use the default command.
func babysitters(e *examination) string {
	var commands, said []string
	for _, w := range e.related("", same) {
		if w.err == nil && len(w.hook.Runs.Dirs) > 0 && !slices.Contains(commands, w.hook.Runs.Command) {
			commands = append(commands, w.hook.Runs.Command)
		}
	}
	if len(commands) == 0 && e.box != nil {
		if driven, _, _ := e.Driven(e.box); len(driven) > 0 {
			commands = []string{"babysitter"}
		}
	}
	for _, command := range commands {
		version, note, err := versionOf(command)
		switch {
		case err != nil:
			e.fail("install it, or name it with --babysitter", "%v", err)
		case note != "":
			e.warn("install the version that it names", "%s", note)
		default:
			said = append(said, fmt.Sprintf("%s is version %s", command, version))
		}
	}
	return strings.Join(said, ", ")
}

// versionOf asks a babysitter command for its version. note is a remark on that version for a person.
func versionOf(command string) (version, note string, err error) {
	words, err := effect.ParseCommand(command)
	if err != nil {
		return "", "", err
	}
	ctx, stop := context.WithTimeout(context.Background(), babysitterWait)
	defer stop()
	asked := babysitter.CLI{Command: words, Note: func(format string, args ...any) { note = fmt.Sprintf(format, args...) }}
	version, err = asked.Version(ctx)
	return version, note, err
}
