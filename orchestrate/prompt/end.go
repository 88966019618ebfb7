package prompt

import "strings"

// Completion is the end of a run.
type Completion struct {
	RunID      string
	Proof      string // is in no other text
	OutputFile string // absolute path of what the run returned; empty if it returned nothing
}

// Text tells the agent how to finish.
func (c Completion) Text() string {
	var w writer
	w.line("The run ", name(c.RunID), " is complete.")
	if c.OutputFile != "" {
		w.line("What it returned is in ", c.OutputFile, ".")
	}
	w.gap()
	w.line("Say in a few sentences what came of it, for the person who asked for it, and end your reply with this line:")
	w.gap()
	w.line("<promise>", c.Proof, "</promise>")
	return w.String()
}

// Failure is a run that ended with an error.
type Failure struct {
	RunID   string
	RunDir  string // absolute path
	Process string // absolute path of the process's code; empty if it is not known
	Error   string // what the process threw
	Asks    bool   // whether a person has to accept code that was changed
}

// Text asks the agent to mend the process.
func (f Failure) Text() string {
	var w writer
	w.line("The run ", name(f.RunID), " failed:")
	w.fence("", cut(strings.TrimSpace(f.Error), maxInline))
	w.line("Its folder is ", f.RunDir, ".")
	if f.Process != "" {
		w.line("Its process is ", f.Process, ".")
	}
	w.gap()
	w.line("Find the cause and mend it, in the process or in what it works with. Leave the journal in the run's folder as it is.")
	w.line("Then say what you changed: the run is tried again after your reply. If you cannot mend it, say that, and why.")
	if f.Asks {
		w.line("If you change the process itself, the run is tried again once a person has accepted that.")
	}
	return w.String()
}
