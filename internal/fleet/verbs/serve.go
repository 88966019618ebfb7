package verbs

import (
	"errors"
	"fmt"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
)

// maxLog limits what a server logs, in bytes, since nobody tends the log of a detached one.
const maxLog = 1 << 20

func serveVerb() cli.Verb {
	return cli.Verb{
		Name:  "serve",
		Short: "be the server of this machine, for agents on it alone",
		Long: `Serve the agents of this machine, without a nats-server: listen on loopback, keep
messages and results in DIRECTORY, each write synced, and let in whoever can read the
token there. --embed DIRECTORY of the other verbs connects to it.

It stays until a signal ends it. --embed starts one in the background where none runs; that
one ends once nobody was connected for five minutes, or when this command takes its place,
and says what goes wrong in DIRECTORY/server.log.

Exit status: 0 a signal ended it; 1 it cannot serve, or no longer.`,
		Example: "heartbeat-nats serve --dir ~/nats",
		Build: func(f *pflag.FlagSet) cli.Action {
			var o link.ServeOptions
			f.StringVar(&o.Dir, "dir", "", "`directory` of its own, which is made if it is missing")
			f.BoolVar(&o.Detached, "detached", false, "")
			f.Lookup("detached").Hidden = true
			return func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				if o.Dir == "" {
					return cli.Usage(errors.New("name its directory with --dir"))
				}
				return serve(&o, s)
			}
		},
	}
}

func serve(o *link.ServeOptions, s cli.Streams) error {
	if o.Detached { // whoever started it may be gone
		signal.Ignore(syscall.SIGPIPE)
	}
	ctx, stop := program.UntilSignal(0)
	defer stop()
	var said atomic.Int64
	say := sayer(s, false)
	o.Say = func(sentence string) {
		if said.Add(int64(len(sentence))) <= maxLog {
			say(sentence)
		}
	}
	o.Out = s.Out
	if err := link.Serve(ctx, *o); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
