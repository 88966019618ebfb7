package page

import (
	"errors"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/fleet/link/target"
	"heartbeat/internal/fleet/names"
)

// Common is what every verb that talks to a server has.
type Common struct {
	Link target.Flags
	JSON bool
}

// add declares the flags. Verbs call it after their own, so that help lists these last.
func (o *Common) add(f *pflag.FlagSet) {
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
	o.Link.Add(f)
}

func (o *Common) check(f *pflag.FlagSet) error { return o.Link.Check(f) }

// OnStream is what every verb has that is about one stream and what belongs to it.
type OnStream struct {
	Stream string
	Common
}

// addStream declares --stream, which comes before a verb's own flags.
func (o *OnStream) addStream(f *pflag.FlagSet) {
	f.StringVar(&o.Stream, "stream", "WORK", "`name` of the stream; what belongs to it is named after it")
}

func (o *OnStream) check(f *pflag.FlagSet) error {
	return errors.Join(names.CheckStream(o.Stream), o.Common.check(f))
}

func addColor(f *pflag.FlagSet, value *string) {
	*value = colour.Auto
	f.Var(cli.Choice(value, colour.Auto, colour.Always, colour.Never), "color", "colour: auto (on a terminal, without NO_COLOR), always or never")
}

func addRaw(f *pflag.FlagSet, value *bool) {
	f.BoolVar(value, "raw", false, "at a terminal, too, show a text byte for byte, with whatever it does to the terminal")
}

// usage marks an error in how the command was called.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(err)
}

func environment() []cli.Item {
	return []cli.Item{
		{Name: target.URLVariable, What: "the server, where --server does not name one"},
		{Name: target.ContextVariable, What: "the context of the nats CLI, where --context does not name one"},
	}
}
