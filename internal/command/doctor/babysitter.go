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
