package verbs

import (
	"context"
	"fmt"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/page"
)

func setup(o *page.Setup, s cli.Streams) error {
	wanted := &layout.Wanted{
		Stream: o.Stream, Subjects: o.Subjects, For: o.For, MaxDeliver: o.MaxDeliver, AckWait: o.AckWait,
		Duplicates: o.Duplicates, KeepResults: o.KeepResults, KeepDead: o.KeepDead, Replicas: o.Replicas, Given: o.Given,
	}
	return connected(context.Background(), &o.Link, "setup", s, func(c *link.Conn) error {
		ctx := context.Background()
		var plan *layout.Plan
		err := c.Again(ctx, func() (err error) {
			if plan, err = layout.Make(ctx, c.JS, wanted); err == nil && !o.DryRun {
				err = plan.Apply(ctx)
			}
			return err
		})
		if err != nil {
			return err
		}
		return printPlan(o, plan, s)
	})
}

func printPlan(o *page.Setup, plan *layout.Plan, s cli.Streams) error {
	for _, step := range plan.Steps {
		if o.JSON {
			if err := cli.PrintJSON(s.Out, step); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(s.Out, stepLine(step, o.DryRun)); err != nil {
			return err
		}
		for _, note := range step.Notes {
			s.Note("%s %s: %s", step.Kind, step.Name, note)
		}
	}
	return nil
}

// did is what a step did, and would do.
var did = map[string][2]string{
	layout.Create: {"made", "would make"},
	layout.Change: {"changed", "would change"},
	layout.Remove: {"removed", "would remove"},
	layout.Keep:   {"kept", "would keep"},
}

func stepLine(step *layout.Step, dryRun bool) string {
	verb := did[step.Action][0]
	if dryRun {
		verb = did[step.Action][1]
	}
	line := fmt.Sprintf("%s %s %s (%s)", verb, step.Kind, step.Name, step.Is)
	if len(step.Differs) > 0 {
		line += ": " + strings.Join(step.Differs, "; ")
	}
	return line
}
