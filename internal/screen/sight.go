package screen

// Kind is what a screen shows.
type Kind string

// The kinds of screens. Those up to Hooks keep a session from starting: the
// client waits for a person or gives up, and runs no hook before that. Dialog and
// Login may come before a session and during one.
const (
	Unknown        Kind = ""               // anything else, and a screen that is still being drawn
	Untrusted      Kind = "untrusted"      // whether the folder is trusted
	Onboarding     Kind = "onboarding"     // a question of the very first start
	APIKey         Kind = "apikey"         // whether to use the API key of the environment
	BypassWarning  Kind = "bypass"         // whether to accept what --dangerously-skip-permissions risks
	BypassRefused  Kind = "bypassrefused"  // --dangerously-skip-permissions as root: the client gave up
	MCPServers     Kind = "mcp"            // which servers of .mcp.json to use
	Imports        Kind = "imports"        // whether CLAUDE.md may import files from elsewhere
	BadSettings    Kind = "settings"       // what to do about a settings file that is not valid
	BadConfig      Kind = "config"         // what to do about a .claude.json that is not valid
	SessionPicker  Kind = "picker"         // which session to resume
	NoConversation Kind = "noconversation" // there is none to resume: the client gave up
	Offline        Kind = "offline"        // the first start reached no service: the client gave up
	Usage          Kind = "usage"          // the client refuses its arguments: it gave up
	Hooks          Kind = "hooks"          // which hooks to trust

	Dialog     Kind = "dialog"     // some other dialog
	Login      Kind = "login"      // how to log in, or a turn that failed for want of a valid login
	Permission Kind = "permission" // whether a tool may run
	Question   Kind = "question"   // the model asks a person
	Busy       Kind = "busy"       // a turn is being worked on
	Ready      Kind = "ready"      // the prompt, and no turn
)

// Matter is what a person has to fix.
type Matter int

// The matters.
const (
	Nothing        Matter = iota // the session runs, or nothing is known
	Setup                        // the machine or the project is not set up
	Authentication               // the client has no valid key or login
)

// Sight is what was recognised.
type Sight struct {
	Kind  Kind
	Title string // the first row of a dialog, "" if that is not on the screen; with Usage, what is refused
}

// Advice is what a person is told of a sight. It is empty if the session runs, or nothing
// is known.
type Advice struct {
	Matter Matter // what the fix is about
	// Cause is a clause that says why the session does not go on, such as "the folder is
	// not trusted: ...". Fix is a sentence, without its full stop, that says what a person
	// can do.
	Cause, Fix string
}

// Retry is an API error that the client retries by itself, for minutes, before it tells its
// hooks.
type Retry struct {
	Cause     string // such as "401 invalid x-api-key"; "API error" at first
	Try, Most string // such as 3 of 10
}
