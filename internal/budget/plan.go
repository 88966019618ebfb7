package budget

import (
	"slices"
	"strings"

	"heartbeat/internal/price"
)

// Plan is what may be spent: by one entry, by one session, and in one day on all entries
// of the inbox.
type Plan struct {
	Entry, Session, Day Limits
	// Run is what a babysitter run may cost, all its entries together, in billionths of a
	// dollar, 0 for no limit.
	Run int64
}

// Within is what both allow: the smaller of each limit.
func (p Plan) Within(other Plan) Plan {
	p.Entry, p.Session, p.Day = p.Entry.Within(other.Entry), p.Session.Within(other.Session), p.Day.Within(other.Day)
	return p
}

// Any reports whether an entry, a session or a day has a limit.
func (p Plan) Any() bool { return p.Entry.Any() || p.Session.Any() || p.Day.Any() }

// budgetFlag is how the client is told of a limit in print mode, where no status line
// says what it costs.
const budgetFlag = "--max-budget-usd"

// ClientArgument returns the argument that gives a client in print mode the limit of a
// session, nil where there is none or its arguments have one.
func ClientArgument(args []string, session Limits) []string {
	own := args
	if i := slices.Index(args, "--"); i >= 0 {
		own = args[:i]
	}
	has := slices.ContainsFunc(own, func(arg string) bool { return arg == budgetFlag || strings.HasPrefix(arg, budgetFlag+"=") })
	if has || session.Nanos == 0 {
		return nil
	}
	usd, _ := price.Nanos(session.Nanos).MarshalJSON() // it never fails
	return []string{budgetFlag + "=" + string(usd)}
}
