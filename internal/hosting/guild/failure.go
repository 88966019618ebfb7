package guild

import (
	"fmt"
	"strconv"
	"time"
)

// excerpt is how many characters of a refusal's body are kept.
const excerpt = 500

// Refused is a guild that answered, and did not do what it was asked.
type Refused struct {
	Status int    // the HTTP status; 200 if the answer itself says "ok": false
	Body   string // at most 500 characters of the answer
}

func (r *Refused) Error() string { return "HTTP " + strconv.Itoa(r.Status) + ": " + r.Body }

// Unreachable is a guild that did not take a call, however often it was tried.
// errors.Is and errors.As see the last attempt's error, and what ended the attempts
// early.
type Unreachable struct {
	For     time.Duration // from the first attempt to giving up
	Last    error         // of the last attempt; a *Refused if that was a status from 500 on
	Stopped error         // the context's cause, if that ended the attempts; else nil
}

func (u *Unreachable) Error() string {
	return "Guild HTTP API unreachable after " + strconv.FormatInt(u.For.Milliseconds(), 10) + "ms: " + u.Last.Error()
}

// Unwrap returns what the error holds.
func (u *Unreachable) Unwrap() []error {
	if u.Stopped == nil {
		return []error{u.Last}
	}
	return []error{u.Last, u.Stopped}
}

// Unanswered is a tool call that reached the guild and got no answer. It is not
// repeated, since the tool may have run.
type Unanswered struct{ Last error }

func (u *Unanswered) Error() string {
	return fmt.Sprintf("the guild did not answer the call, and may have carried it out: %v", u.Last)
}

// Unwrap returns what went wrong.
func (u *Unanswered) Unwrap() error { return u.Last }
