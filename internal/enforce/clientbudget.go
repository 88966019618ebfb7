package enforce

import (
	"slices"
	"strings"

	"heartbeat/internal/budget"
	"heartbeat/internal/price"
)

// budgetFlag is how the client is told of a limit in print mode, where no status line
// says what it costs.
const budgetFlag = "--max-budget-usd"

// ClientBudget returns the argument that gives a client in print mode the limit of a
// session, nil where there is none or its arguments have one.
func ClientBudget(args []string, session budget.Limits) []string {
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
