package hosting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

var drainVerb = cli.Verb{
	Name:  "drain-dlq",
	Short: "send the guild the reports that it lacks",
	Long: `Send the guild the reports that it does not have, and fill in its table of transcripts,
as hosts and their guardians do for their own sessions. Sessions whose host was killed
are finished first. Without --once that is repeated every --every until a signal arrives.
Files of the babysitter of shardworks in the dlq folder beside the database are sent as
well, to --guild. What the guild has refused is sent again only with --refused.

Exit status: 0 no report is left; 1 some are, and the sentences say why; 128+n
signal n ended it.`,
	Example: `heartbeat-host drain-dlq --once --db .nexus/nexus.db
heartbeat-host drain-dlq --every 1m`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o shownFlags
		var how session.DrainOptions
		var once bool
		every := cli.Span(30 * time.Second)
		o.add(f)
		f.BoolVar(&once, "once", false, "return after one pass")
		f.Var(&every, "every", "how long to wait between two passes")
		f.Var(cli.Named(&how.GuildURL, "name a URL, or leave the flag out"), "guild", "the guild's `URL`, for reports of sessions that have no folder here")
		f.BoolVar(&how.Refused, "refused", false, "also send reports that the guild has refused")
		return actionOf(f, func(args []string) error {
			switch {
			case once && f.Changed("every"):
				return errors.New("--every is about several passes: leave it or --once out")
			case every <= 0:
				return errors.New("--every is 0: give it some time, or use --once")
			}
			return cli.NoArgs(args)
		}, func(s cli.Streams) error {
			return untilSignal(func(ctx context.Context) error {
				for {
					err := drain(ctx, &o, how, s)
					if once {
						return err
					}
					if err != nil && ctx.Err() == nil {
						s.Note("%v", err)
					}
					select {
					case <-time.After(time.Duration(every)):
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			})
		})
	},
}

// drain finishes the dead sessions beside each database and sends the waiting reports.
func drain(ctx context.Context, o *shownFlags, how session.DrainOptions, s cli.Streams) error {
	dbs, problems := databases(o)
	left := 0
	for _, db := range dbs {
		how.DB = db
		d, err := session.Drain(ctx, how)
		for _, id := range d.Finished {
			s.Note("session %s, whose host was killed, is finished", id)
		}
		for _, r := range d.Reports {
			if r.What != guild.ReportSent {
				left++
			}
			problems = errors.Join(problems, o.show(s, r, outcomeSentence(r)))
		}
		problems = errors.Join(problems, err)
	}
	if left > 0 && ctx.Err() == nil {
		problems = errors.Join(problems, fmt.Errorf("%s still waiting", words.Count(left, "report is", "reports are")))
	}
	return problems
}

func outcomeSentence(o guild.DrainOutcome) string {
	what := fmt.Sprintf("the %s of session %s", kinds[o.Kind], o.SessionID)
	if o.SessionID == "" {
		what = o.Path
	}
	switch o.What {
	case guild.ReportSent:
		if o.As != "" && o.As != o.Status {
			return what + " was taken by the guild as " + string(o.As)
		}
		return what + " was taken by the guild"
	case guild.ReportRefused:
		return what + " is refused by the guild, and stays: " + o.Why
	case guild.ReportLeft:
		return what + " stays for the next time: " + o.Why
	}
	return what + " cannot be sent: " + o.Why
}

var kinds = map[store.Kind]string{store.Running: "start", store.Record: "end"}
