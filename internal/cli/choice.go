package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

// Choice returns the value of a flag that takes one of the allowed words.
func Choice(value *string, allowed ...string) pflag.Value { return choice{value, allowed} }

func (c choice) Set(text string) error {
	for _, a := range c.allowed {
		if a == text {
			*c.value = text
			return nil
		}
	}
	return fmt.Errorf("it is one of %s", strings.Join(c.allowed, ", "))
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return strings.Join(c.allowed, "|") }

// Choices returns the words that a flag takes, or nil if it takes other values.
func Choices(f *pflag.Flag) []string {
	if c, is := f.Value.(choice); is {
		return c.allowed
	}
	return nil
}
