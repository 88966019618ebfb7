package hook

// outcome is what one look at the inbox came to.
type outcome int

const (
	delivered outcome = iota + 1 // the decision is printed
	approved                     // nothing is to be delivered in this turn
	empty                        // nothing waits
	held                         // delivery is paused
	owned                        // the entry in flight is another session's, which lives
	torn                         // a last line waits for its newline
	leave                        // another hook acted on this very Stop
	resting                      // the entry in flight waits for tasks in the background
	unclear                      // the transcript may tell more soon
	more                         // so much was set aside that others come first
)
