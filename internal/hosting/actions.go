package hosting

import (
	"fmt"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/verbs"
)

// actions are what the verbs do.
var actions = verbs.Actions{
	Start: start, Run: run,
	List: named("list", list), Status: named("status", status), Logs: named("logs", logs), Attach: named("attach", follow),
	Send: named("send", send), Cancel: named("cancel", cancel),
	Drain: named("drain-dlq", drain), Collect: named("gc", collect),
}

// named has errors begin with the verb.
func named[O any](verb string, act func(O, cli.Streams) error) func(O, cli.Streams) error {
	return func(o O, s cli.Streams) error {
		if err := act(o, s); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		return nil
	}
}
