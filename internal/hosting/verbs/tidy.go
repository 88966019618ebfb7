package verbs

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Drain is about reports that no guild has taken yet.
type Drain struct {
	Shown
	Once  bool
	Every time.Duration
	Cwds  []string
	// Guild is the address for the reports of sessions that were not hosted here.
	Guild   string
	Refused bool
}

func drainVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "drain-dlq",
		Short: "report what the guild was not told yet",
		Long: `Report the ends of sessions that could not be reported, from the dlq folder beside
the database, and remove each file once the guild has taken it. Sessions whose host
was killed are finished first. Without --once it goes on, every --every, until a
signal comes. The next host that starts beside the same database does the same once.

With --cwd the files are read as well that a babysitter of shardworks left in
.nexus/dlq below the folder that its session ran in. Of those, and of sessions that
never got a folder of their own, nothing here says who is to be told: --guild does.
A report that the guild has refused is sent again only with --refused.

Exit status: 0 no report is left; 1 some are, and the sentences say why; 128+n
signal n ended it.`,
		Example: `heartbeat-host drain-dlq --once --db .nexus/nexus.db
heartbeat-host drain-dlq --every 1m`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Drain
			every := cli.Span(30 * time.Second)
			f := cli.NewFlags("drain-dlq")
			o.add(f)
			f.BoolVar(&o.Once, "once", false, "return after one pass")
			f.Var(&every, "every", "how long to rest between two passes")
			f.StringArrayVar(&o.Cwds, "cwd", nil, "read the seed's files in this `directory`, too (may be repeated)")
			f.StringVar(&o.Guild, "guild", "", "the guild's `URL`, for reports of sessions that have no folder here")
			f.BoolVar(&o.Refused, "refused", false, "send those again, too, that the guild has refused")
			return f, func(args []string, s cli.Streams) error {
				err := o.check(f)
				switch {
				case err != nil:
				case o.Once && f.Changed("every"):
					err = errors.New("--every is about several passes: leave it or --once out")
				case every <= 0:
					err = errors.New("--every is 0: give it some time, or use --once")
				case f.Changed("guild") && o.Guild == "":
					err = errors.New("--guild is empty: name a URL, or leave the flag out")
				case slices.Contains(o.Cwds, ""):
					err = errors.New("--cwd is empty: name a directory, or leave the flag out")
				}
				if err = errors.Join(cli.NoArgs(args), usage(err)); err != nil {
					return err
				}
				o.Every = time.Duration(every)
				return do.Drain(&o, s)
			}
		},
	}
}

// Collect is about what dead and old sessions left.
type Collect struct {
	Shown
	Older      time.Duration
	Unanswered bool
	DryRun     bool
}

func gcVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "gc",
		Short: "finish dead sessions, and remove what old ones left",
		Long: `Finish the sessions whose host was killed, remove temporary folders that have
outlived their session, and remove the folders of sessions that ended longer ago
than --older: their inbox, results and state. Transcripts stay in the database, and
logs where they are. A folder is kept while something would be lost with it: a
report that the guild has not taken, messages that the database has not, or entries
that were not answered (--unanswered).

Exit status: 0 done, also where there was nothing to do; 1 not all was done, and
the sentences say why.`,
		Example: `heartbeat-host gc --older 30d
heartbeat-host gc --older 7d --dry-run --json`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Collect
			older := cli.Span(30 * 24 * time.Hour)
			f := cli.NewFlags("gc")
			o.add(f)
			f.Var(&older, "older", "remove the folders of sessions that ended so long ago")
			f.Lookup("older").DefValue = "30d"
			f.BoolVar(&o.Unanswered, "unanswered", false, "remove them even if entries of theirs were not answered")
			f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), usage(o.check(f))); err != nil {
					return err
				}
				o.Older = time.Duration(older)
				return do.Collect(&o, s)
			}
		},
	}
}
