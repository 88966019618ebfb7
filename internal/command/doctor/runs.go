package doctor

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
