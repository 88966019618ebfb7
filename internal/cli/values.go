package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/words"
)

// refusal is why a flag does not accept a value. The flag's name is put before it, unless it begins with one.
type refusal string

func (r refusal) Error() string { return string(r) }

// FlagError turns an error from parsing flags into a usage error. nil stays nil.
func FlagError(err error) error {
	var invalid *pflag.InvalidValueError
	var refused refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && errors.As(err, &refused):
		if !strings.HasPrefix(string(refused), "-") {
			refused = refusal("--"+invalid.GetFlag().Name+" ") + refused
		}
		return usageError{refused}
	}
	return usageError{err}
}

// value is a flag value built from a parser and a formatter.
type value[T any] struct {
	to    *T
	kind  string
	parse func(string) (T, error)
	text  func(T) string
}

func (v value[T]) Set(text string) error {
	read, err := v.parse(text)
	if err == nil {
		*v.to = read
	}
	return err
}

func (v value[T]) String() string { return v.text(*v.to) }
func (v value[T]) Type() string   { return v.kind }

// AtLeast returns the value of a flag for a whole number of at least least. The default is the present value of to.
func AtLeast(to *int, least int) pflag.Value {
	return atLeast(to, least, "is %d: it must be %d or more")
}

// atLeast is [AtLeast] with the refusal of a smaller number, a format for that number and least.
func atLeast(to *int, least int, refused string) pflag.Value {
	return value[int]{to, "int", func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return 0, errors.New("it takes a whole number")
		case n < least:
			return 0, refusal(fmt.Sprintf(refused, n, least))
		}
		return n, nil
	}, strconv.Itoa}
}

func same(text string) string { return text }

// AddCount declares -n, where 0 means all, and the hidden synonym --tail.
func AddCount(f *pflag.FlagSet, to *int, first int, text string) {
	*to = first
	f.VarP(atLeast(to, 0, "-n is below %[2]d: give how many, or %[2]d for all"), "count", "n", text)
	AddAlias(f, "count", "tail")
}

// CountGiven reports whether -n or a synonym was given.
func CountGiven(f *pflag.FlagSet) bool { return f.Changed("count") || f.Changed("tail") }

// AddFollow declares --follow.
func AddFollow(f *pflag.FlagSet, to *bool) {
	f.BoolVarP(to, "follow", "f", false, "continue with what comes")
}

// Named returns the value of a flag for a non-empty text, such as a file name. remedy is what to do about an empty one.
func Named(to *string, remedy string) pflag.Value {
	return value[string]{to, "string", func(text string) (string, error) {
		if text == "" {
			return "", refusal("is empty: " + remedy)
		}
		return text, nil
	}, same}
}

// Spelled returns a flag as it would be given: none for a switch that is off or a list that is empty.
func Spelled(f *pflag.Flag) (args []string) {
	several, repeated := f.Value.(pflag.SliceValue)
	switch {
	case repeated:
		for _, value := range several.GetSlice() {
			args = append(args, "--"+f.Name, value)
		}
	case f.Value.Type() != "bool":
		return []string{"--" + f.Name, f.Value.String()}
	case f.Value.String() == "true":
		return []string{"--" + f.Name}
	}
	return args
}

// spellAll returns the flags that have a value, as they would be given.
func spellAll(f *pflag.FlagSet) (args []string) {
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && (flag.Value.String() != "" || flag.DefValue != "") { // a default may be taken back
			args = append(args, Spelled(flag)...)
		}
	})
	return args
}

// AddAlias declares an older name of a flag, hidden from the help.
func AddAlias(f *pflag.FlagSet, name, old string) {
	flag := *f.Lookup(name)
	flag.Name, flag.Shorthand, flag.Hidden = old, "", true
	f.AddFlag(&flag)
}

type choice struct {
	value   *string
	allowed []string
}

// Choice returns the value of a flag that accepts one of the allowed words.
func Choice(value *string, allowed ...string) pflag.Value { return choice{value, allowed} }

func (c choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return fmt.Errorf("it is one of %s", strings.Join(c.allowed, ", "))
	}
	*c.value = text
	return nil
}

func (c choice) String() string    { return *c.value }
func (c choice) Type() string      { return strings.Join(c.allowed, "|") }
func (c choice) Choices() []string { return c.allowed }

// Choices returns the words that a shell offers for a flag, or nil if it is no choice.
func Choices(f *pflag.Flag) []string {
	if c, is := f.Value.(interface{ Choices() []string }); is {
		return c.Choices()
	}
	return nil
}

// Span is the value of a flag for a length of time: seconds (300, 0.5), a Go duration (5m), or days (30d, 1d12h).
type Span time.Duration

// Set parses what was typed.
func (s *Span) Set(text string) error {
	d, err := words.ParseSpan(text)
	if err != nil || d < 0 {
		return errors.New("it takes seconds or a duration, such as 300, 0.5, 5m or 30d")
	}
	*s = Span(d)
	return nil
}

// String returns a Go duration, which every release of heartbeat reads: install writes it into settings files.
func (s *Span) String() string { return time.Duration(*s).String() }

// Type is the value's name in the help.
func (s *Span) Type() string { return "duration" }

// Bytes is the value of a flag for memory or disk space: bytes (1048576), or with a binary unit (512K, 100M, 4G, 1T).
type Bytes int64

// byteUnits are the units, largest first.
var byteUnits = []struct {
	letter string
	size   float64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// Set parses what was typed.
func (b *Bytes) Set(text string) error {
	unit := 1.0
	number := strings.TrimSuffix(strings.ToUpper(text), "IB")
	for _, u := range byteUnits {
		if short, found := strings.CutSuffix(number, u.letter); found {
			number, unit = short, u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*unit < math.MaxInt64) { // NaN fails both comparisons
		return errors.New("it takes a number of bytes, such as 1048576, 512K, 100M or 4G")
	}
	*b = Bytes(n * unit)
	return nil
}

// String returns the amount in the largest unit that leaves a whole number.
func (b *Bytes) String() string {
	for _, u := range byteUnits {
		if *b > 0 && int64(*b)%int64(u.size) == 0 {
			return strconv.FormatInt(int64(*b)/int64(u.size), 10) + u.letter
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type is the value's name in the help.
func (b *Bytes) Type() string { return "bytes" }

// list is the value of a repeatable flag. pflag's own sets up a CSV writer at every start of the hook.
type list struct {
	to     *[]string
	commas bool // each value is split at commas
}

func (l list) Type() string       { return "strings" }
func (l list) String() string     { return "[" + strings.Join(*l.to, ",") + "]" }
func (l list) GetSlice() []string { return *l.to }

func (l list) Set(text string) error {
	all := []string{text}
	if l.commas {
		all = slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
	}
	return l.Replace(append(*l.to, all...))
}

func (l list) Append(text string) error { return l.Set(text) }

func (l list) Replace(texts []string) error {
	*l.to = texts
	return nil
}
