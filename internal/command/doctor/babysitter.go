package doctor

import (
	"context"
	"slices"
	"time"
)

// babysitterWait is how long each command may take to print its version. npx may have
// to fetch it first.
const babysitterWait = 90 * time.Second

// checkBabysitter asks each command that drives runs of the inbox for its version.
func checkBabysitter(e *examination) (all []Check) {
	if e.Babysitter == nil {
		return nil
	}
	for _, command := range e.babysitters() {
		ctx, stop := context.WithTimeout(context.Background(), babysitterWait)
		version, said, err := e.Babysitter(ctx, command)
		stop()
		switch {
		case err != nil:
			all = append(all, fail("babysitter", "install it, or name it with --babysitter", "%v", err))
		case said != "":
			all = append(all, warn("babysitter", "install the version that it names", "%s", said))
		default:
			all = append(all, ok("babysitter", "%s is version %s", command, version))
		}
	}
	return all
}

// babysitters returns the commands of the hooks that drive runs. For runs that
// something else drives, the usual command is assumed.
func (e *examination) babysitters() (all []string) {
	if e.inbox == "" {
		return nil
	}
	for _, w := range e.wires {
		if e.relate(w) == same && w.err == nil && len(w.hook.Runs) > 0 && !slices.Contains(all, w.hook.Babysitter) {
			all = append(all, w.hook.Babysitter)
		}
	}
	if len(all) == 0 && e.Runs != nil && slices.ContainsFunc(e.Runs(e.inbox), func(r DrivenRun) bool { return r.Strange == "" }) {
		all = []string{"babysitter"}
	}
	return all
}

// DrivenRun is a babysitter run that the inbox drives.
type DrivenRun struct {
	Dir string
	// Err is why it cannot be read, or nil.
	Err error
	// Damaged says that its journal is damaged, which babysitter can repair.
	Damaged bool
	// Strange is the name of a file that says that the inbox drives a run, but was not
	// written here. The other members are empty then.
	Strange string
	// Waits are the ids of the entries whose outcome it waits for.
	Waits []string
}

// checkRuns looks at the runs that the inbox drives.
func checkRuns(e *examination) (all []Check) {
	if e.Runs == nil || e.inbox == "" {
		return nil
	}
	for _, r := range e.Runs(e.inbox) {
		repair := quote("heartbeat", "orchestrate", "--inbox", e.inbox, "--run", r.Dir, "--repair", "--once")
		switch {
		case r.Strange != "":
			all = append(all, warn("run", "remove it; or name the run's directory with --run, and a step writes it anew",
				"%s was not made by way of this inbox (an older version, a copy, a repository), so nothing is taken from it", r.Strange))
		case r.Damaged:
			all = append(all, fail("run", repair+" (it drops what cannot be read, and keeps the old journal)", "%v", r.Err))
		case r.Err != nil:
			all = append(all, fail("run", "see whether "+r.Dir+" is there and readable", "%v", r.Err))
		default:
			all = append(all, ok("run", "%s can be read; each step runs the code that it names, as you", e.show(r.Dir)))
		}
	}
	return all
}
