package cli

import "github.com/spf13/pflag"

// list is the value of a flag that may be repeated. It leaves everything to pflag, but
// only once the flag is used: pflag's own values set up a CSV writer to spell an empty
// default, which every start of the hook would pay for.
type list struct {
	to   *[]string
	kind string // as pflag calls it
	used pflag.SliceValue
}

// arrayList takes each value as it is.
func arrayList(to *[]string) pflag.Value { return &list{to: to, kind: "stringArray"} }

// commaList splits each value at its commas.
func commaList(to *[]string) pflag.Value { return &list{to: to, kind: "stringSlice"} }

func (l *list) use() pflag.SliceValue {
	if l.used == nil {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		if l.kind == "stringSlice" {
			f.StringSliceVar(l.to, "list", *l.to, "")
		} else {
			f.StringArrayVar(l.to, "list", *l.to, "")
		}
		l.used = f.Lookup("list").Value.(pflag.SliceValue)
	}
	return l.used
}

func (l *list) Type() string { return l.kind }

func (l *list) String() string {
	if l.used == nil && len(*l.to) == 0 {
		return "[]"
	}
	return l.use().(pflag.Value).String()
}

func (l *list) Set(text string) error        { return l.use().(pflag.Value).Set(text) }
func (l *list) Append(text string) error     { return l.use().Append(text) }
func (l *list) Replace(texts []string) error { return l.use().Replace(texts) }
func (l *list) GetSlice() []string           { return l.use().GetSlice() }
