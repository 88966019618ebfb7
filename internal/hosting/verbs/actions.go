package verbs

import "heartbeat/internal/cli"

// Actions are what the verbs do.
type Actions struct {
	Start, Run func(*Hosting, cli.Streams) error
	List       func(*Listing, cli.Streams) error
	Status     func(*Look, cli.Streams) error
	Logs       func(*Logs, cli.Streams) error
	Attach     func(*Attach, cli.Streams) error
	Send       func(*Send, cli.Streams) error
	Cancel     func(*Cancel, cli.Streams) error
	Drain      func(*Drain, cli.Streams) error
	Collect    func(*Collect, cli.Streams) error
}
