package screen

// Kind is what a screen shows.
type Kind string

// The kinds of screens. Kinds up to Hooks keep a session from starting: the client waits for a
// person or gives up, and runs no hook before that. Dialog and Login may come before a session and
// during one.
const (
	Unknown        Kind = ""               // anything else, or a screen that is still being drawn
	Untrusted      Kind = "untrusted"      // asks whether the folder is trusted
	Onboarding     Kind = "onboarding"     // asks a question of the very first start
	APIKey         Kind = "apikey"         // asks whether to use the API key of the environment
	BypassRefused  Kind = "bypassrefused"  // --dangerously-skip-permissions as root: the client gave up
	NoConversation Kind = "noconversation" // no session to resume: the client gave up
	Offline        Kind = "offline"        // the first start reached no service: the client gave up
	Usage          Kind = "usage"          // the client refuses its arguments and gave up
	Hooks          Kind = "hooks"          // asks which hooks to trust

	Dialog     Kind = "dialog"     // some other dialog
	Login      Kind = "login"      // asks how to log in, or a turn failed for want of a valid login
	Permission Kind = "permission" // asks whether a tool may run
	Question   Kind = "question"   // the model asks a person
	Busy       Kind = "busy"       // a turn is in progress
	Ready      Kind = "ready"      // the prompt, and no turn
)

// Matter is what a person has to fix.
type Matter int

const (
	Nothing        Matter = iota // the session runs, or nothing is known
	Setup                        // the machine or the project is not set up
	Authentication               // the client has no valid key or login
)

// Sight is what was recognised on a screen.
type Sight struct {
	Kind  Kind
	Title string // a dialog's first row, "" if it is off the screen; for Usage, what is refused
}

// Advice is what to tell a person about a sight. It is empty if the session runs, or if nothing is known.
type Advice struct {
	Matter Matter // what the fix is about
	// Cause is a clause that says why the session is stuck, such as "the folder is not trusted:
	// ...". Fix is a sentence without its full stop that says what a person can do.
	Cause, Fix string
}

// Retry is an API error that the client itself retries for minutes before it tells its hooks.
type Retry struct {
	Cause     string // such as "401 invalid x-api-key"; "API error" at first
	Try, Most string // such as 3 of 10
}
