package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

type costsFlags struct {
	cli.InboxFlags
	shownFlags
	by     book.By
	since  cli.Moment
	csv    bool
	prices bool
}

var costsVerb = cli.Verb{
	Name:  "costs",
	Short: "show what was spent, by day, entry, session, model or metadata",
	Long: `Show what was spent, in dollars and in tokens. The cost of an entry adds up over its
attempts and sessions. What a session spent while no entry was in flight, such as on
its first prompt, is shown as outside of entries.

Each request is priced by the tokens that its answer reports and a table of what models
cost. --prices prints that table, and where each price comes from. "+" behind a sum
means that more was spent: nobody knows the price of a model that was used.

--by meta.KEY adds up by that member of entries, such as branch of send --meta
branch=main. --csv is for spreadsheets: it has no line for the total, and no computed
cell.

Exit status: 0 shown, 1 not.`,
	Example: `heartbeat costs
heartbeat costs --by entry --since 24h
heartbeat costs --prices
heartbeat costs --by meta.branch --since 2026-03-01 --csv`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := costsFlags{by: book.Day, since: cli.Moment{Ago: true}}
		o.Add(f)
		f.Var(&o.by, "by", "add up by `day|entry|session|model|meta.KEY`")
		f.Var(&o.since, "since", "only what was spent since then (a time, or how long ago)")
		f.BoolVar(&o.csv, "csv", false, "print a table for spreadsheets")
		f.BoolVar(&o.prices, "prices", false, "print what models cost, and nothing else")
		o.addColor(f)
		return func(args []string, s cli.Streams) error {
			switch {
			case o.prices && (o.csv || o.JSON):
				return cli.Usage(errors.New("--prices prints a table: leave --json and --csv out"))
			case o.prices:
				return o.printPrices(s)
			case o.csv && o.JSON:
				return cli.Usage(errors.New("--csv and --json: one of them is enough"))
			case o.since.After(time.Now()):
				return cli.Usage(fmt.Errorf("--since %s is yet to come: give a time that has passed, or how long ago it was", &o.since))
			}
			return wrap("costs", o.run(s))
		}
	},
}

func (o *costsFlags) run(s cli.Streams) error {
	box, err := o.OpenRead(s)
	if err != nil {
		return err
	}
	sum, err := o.sum(box, s)
	if err != nil {
		return err
	}
	rows, total := sum.Rows()
	if len(rows) == 0 && !o.csv {
		noteNothing(&o.InboxFlags, s, "was spent", box)
		return nil
	}
	switch {
	case o.JSON:
		return printCosts(append(rows, total), "", s.Out, func(g *book.Group) string { return g.JSON(o.by) })
	case o.csv:
		return printCosts(rows, book.CSVHead+"\n", words.Raw(s.Out), func(g *book.Group) string { return g.CSV(o.by) })
	}
	if err := o.table(append(rows, total), o.display(s.Out)); err != nil {
		return err
	}
	if n := total.Spent.Unpriced; n > 0 {
		s.Note("for %s the price of the model is not known, so that only tokens are counted: %s",
			words.Count(int(n), "request", "requests"), meter.SayPrices())
	}
	return nil
}

func (o *costsFlags) sum(box *inbox.Inbox, s cli.Streams) (*book.Sum, error) {
	sum, kept := book.NewSum(o.by), price.Amount{}
	check := book.Check{}
	now, err := book.Spending(box, func(c price.Line) {
		kept = kept.Plus(c.Amount)
		check.Add(&c)
		if !c.At.Before(o.since.Time) {
			sum.Add(c)
		}
	})
	if err != nil {
		return nil, err
	}
	s.Warn(now.Warnings)
	for c := range now.Open() {
		sum.Add(c)
	}
	if gone := now.Account.Total.Minus(kept); o.since.IsZero() && (gone.Nanos > 0 || gone.Tokens.Sum() > 0) {
		s.Note("%s more was spent earlier: its lines are no longer in %s", gone, box.CostsPath())
	}
	if sentence := check.Sentence(); sentence != "" {
		s.Note("%s", sentence)
	}
	if o.by.Key() != "" {
		err = describe(box, sum, s)
	}
	return sum, err
}

func describe(box *inbox.Inbox, sum *book.Sum, s cli.Streams) (err error) {
	v, err := box.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, d := range []*inbox.Delivery{v.InFlight(), v.Redeliver()} {
		if d != nil {
			sum.Describe(d.EntryID, d.Metadata())
		}
	}
	notes, err := history.Metadata(box, sum.Describe)
	s.Warn(notes)
	return err
}

func printCosts(rows []*book.Group, head string, to io.Writer, spell func(*book.Group) string) error {
	out := bufio.NewWriter(to)
	_, _ = out.WriteString(head) // Flush returns the error
	for _, g := range rows {
		_, _ = out.WriteString(spell(g) + "\n") // likewise
	}
	return out.Flush()
}

func number(title string) layout.Column { return layout.Column{Title: title, Right: true} }

func (o *costsFlags) table(rows []*book.Group, d display) error {
	title := cmp.Or(map[book.By]string{book.Day: "DAY", book.Entry: "ENTRY", book.Session: "SESSION", book.Model: "MODEL"}[o.by], words.Brief(o.by.Key()))
	outside := number("OUTSIDE")
	outside.IfAny = true
	l := d.list(layout.Column{Title: title, Text: true, Cut: true, Most: 40}, number("ENTRIES"), number("USD"), outside,
		number("REQUESTS"), number("INPUT"), number("OUTPUT"), number("CACHE READ"), number("CACHE WRITE"))
	tokens := func(n int64) string {
		if d.ForPeople() {
			return price.FormatTokens(n)
		}
		return strconv.FormatInt(n, 10)
	}
	for _, g := range rows {
		t := g.Spent.Tokens
		l.row(g.Label(o.by), strconv.FormatInt(g.Entries, 10), g.USD(), g.OutsideUSD(), strconv.FormatInt(g.Spent.Requests, 10),
			tokens(t.Input), tokens(t.Output), tokens(t.CacheRead), tokens(t.CacheWrite))
	}
	return l.end()
}

func (o *costsFlags) printPrices(s cli.Streams) error {
	table, err := meter.Prices()
	l := o.display(s.Out).list(layout.Column{Title: "MODEL", Text: true, Cut: true, Most: 40}, number("INPUT"), number("OUTPUT"),
		number("CACHE READ"), number("CACHE WRITE"), number("1 H"), number("FAST INPUT"), layout.Column{Title: "FROM", Text: true})
	row := func(name string, r *price.Rates, from string) {
		fast := "-"
		if r.Fast != nil {
			fast = rate(r.Fast.Input)
		}
		l.row(name, rate(r.Input), rate(r.Output), rate(r.CacheRead), rate(r.CacheWrite), rate(r.CacheWrite1h), fast, from)
	}
	for _, own := range table.Own {
		row(own.Pattern, &own.Rates, table.Path)
	}
	for _, model := range price.Known() {
		r, file := table.Of(model)
		if slices.ContainsFunc(table.Own, func(own price.Own) bool { return own.Pattern == model }) {
			continue // it has its row
		}
		from := "built in, " + price.TableDate
		if file != "" {
			from += ", times " + strconv.FormatFloat(*table.Multiplier, 'g', -1, 64) + " by " + file
		}
		row(model, r, from)
	}
	if errEnd := l.end(); errEnd != nil {
		return errEnd
	}
	s.Note("dollars for a million tokens; your own prices go into %s: see docs/cost.md", meter.PricesPlace())
	return wrap("costs", err)
}

func rate(dollars float64) string { return strconv.FormatFloat(dollars, 'g', 6, 64) }
