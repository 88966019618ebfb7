package hosting

import (
	"fmt"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

// run hosts a session as the babysitter of shardworks does.
func run(h *verbs.Hosting, s cli.Streams) error {
	o, err := readOrder(h, s.In)
	if err != nil {
		o.keepFailure(err, s)
	} else {
		err = o.host(func(session.Up) {})
	}
	if err != nil {
		fmt.Fprintf(s.Err, "[babysitter] Fatal error: %s\n", words.Sentence(err.Error()))
		return cli.Told(cli.ExitError)
	}
	return nil
}

// keepFailure is [order.reportFailure] for a config that was refused.
func (o *order) keepFailure(why error, s cli.Streams) {
	if err := o.reportFailure(why); err != nil {
		s.Complain(err)
	}
}
