package doctor

import "fmt"

// scope says what a check belongs to.
type scope uint8

const (
	ofClaude scope = 1 << iota // sessions of Claude Code
	ofCodex                    // sessions of Codex
	ofFsck                     // the files beside an inbox: see [Fsck]
	// ofBox marks a check that needs to know the inbox.
	ofBox
	// ofWiring marks a check of what is wired for sessions of the project. It is skipped where heartbeat-launch
	// wires each session, and where Codex does not list its hooks.
	ofWiring
)

type row struct {
	id string
	of scope
	// looks says what the check looks at, as docs/operate.md words it.
	looks string
	// judge adds findings by warn and fail. If it adds none, it returns the evidence that all is well, or "" to
	// report nothing.
	judge func(*examination) (well string)
}

// table returns all checks in the order in which they are shown.
func table() []row {
	const both = ofClaude | ofCodex
	return []row{
		{"troubles", both | ofBox, "what is wrong with the inbox now, in the words of `status`", troubles},
		{"client", both, "the program is there, and its release has what heartbeat needs", clientRelease},
		{"settings", ofClaude, "the settings files that Claude Code merges can be read", settingsFiles},
		{"hooks-on", ofClaude, "no settings file keeps hooks from running", hooksOn},
		{"trust", both, "the folder is trusted; Codex trusts the hooks", trust},
		{"onboarding", ofClaude, "a session starts without questions", onboarding},
		{"environment", ofClaude, "no variables of another session, or of CI", environment},
		{"wired", both | ofWiring, "one hook of Stop serves the inbox, or the plugin or the launcher does", wired},
		{"events", both | ofBox | ofWiring, "the other events are wired as `install` wires them", events},
		{"others", both | ofBox | ofWiring, "no other inbox is wired for the project", others},
		{"binary", both | ofBox | ofWiring, "what the hooks start is there, and of this build", binary},
		{"flags", both | ofBox | ofWiring, "the hook takes its arguments", flags},
		{"timeout", both | ofBox | ofWiring, "no hook is ended while it waits for an entry", timeout},
		{"cap", ofClaude | ofWiring, "the client's cap on blocks in a row is lifted", blockCap},
		{"prices", both | ofBox, "the table of prices can be read, and fits what the client says", prices},
		{"directory", both | ofFsck | ofBox, "this user may work in the inbox's directory, and others may not", directory},
		{"inbox", both | ofFsck | ofBox, "the inbox is a file that only its user writes", inboxFile},
		{"state-files", both | ofFsck | ofBox, "owner, mode and kind of the files beside it", stateFiles},
		{"file-system", both | ofBox, "a local disk, writable, with space left", fileSystem},
		{"leftovers", both | ofFsck | ofBox, "no files of killed commands", leftovers},
		{"state", both | ofFsck | ofBox, "the state can be read, and is of this inbox", state},
		{"run", both | ofFsck | ofBox, "babysitter runs of the inbox can be read", runs},
		{"babysitter", both | ofBox, "the babysitter command is there, and of a measured version", babysitters},
	}
}

// look makes the checks of a scope.
func (e *examination) look(of scope) {
	for _, r := range table() {
		if r.of&of == 0 || r.of&ofBox != 0 && e.inbox == "" || r.of&ofWiring != 0 && (e.Launched || e.Codex && !e.program.known) {
			continue
		}
		e.id = r.id
		before := len(e.found)
		if well := r.judge(e); well != "" && len(e.found) == before {
			e.note(OK, "", well)
		}
	}
}

func (e *examination) note(state, fix, evidence string) {
	e.found = append(e.found, Check{Name: e.id, State: state, Evidence: evidence, Fix: fix})
}

func (e *examination) warn(fix, format string, args ...any) {
	e.note(Warn, fix, fmt.Sprintf(format, args...))
}

func (e *examination) fail(fix, format string, args ...any) {
	e.note(Fail, fix, fmt.Sprintf(format, args...))
}

// unseen reports what could not be looked at.
func (e *examination) unseen(fix string, err error) {
	e.fail(fix, "could not be looked at: %v", err)
}
