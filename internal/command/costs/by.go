package costs

import (
	"errors"
	"strings"
)

// By says what spending is added up by. It is a pflag.Value.
type By string

// The groupings, besides metaBy and a key.
const (
	Day     By = "day"
	Entry   By = "entry"
	Session By = "session"
	metaBy     = "meta."
)

// Set takes what was typed.
func (b *By) Set(text string) error {
	switch By(text) {
	case Day, Entry, Session:
		*b = By(text)
		return nil
	}
	if key, is := strings.CutPrefix(text, metaBy); !is || key == "" {
		return errors.New("it is one of day, entry, session, or meta.KEY, such as meta.branch")
	}
	*b = By(text)
	return nil
}

func (b *By) String() string { return string(*b) }

// Type is what the help calls it.
func (b *By) Type() string { return "day|entry|session|meta.KEY" }

// Key is the member of the metadata that it names, empty for other groupings.
func (b By) Key() string {
	key, is := strings.CutPrefix(string(b), metaBy)
	if !is {
		return ""
	}
	return key
}
