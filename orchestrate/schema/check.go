package schema

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrSchema says that the schema itself cannot be used, so that no value can be checked.
var ErrSchema = errors.New("not a usable schema")

// Mismatch is one place where a value does not fit.
type Mismatch struct {
	Path string // where, such as $.items[2].name; $ is the value itself
	What string // one line
}

// MismatchError is a value that does not fit its schema. Its text has a line for
// each mismatch, at most twenty: the path, a colon, what is wrong.
type MismatchError struct{ Mismatches []Mismatch }

func (e *MismatchError) Error() string {
	lines := make([]string, len(e.Mismatches))
	for i, m := range e.Mismatches {
		lines[i] = m.Path + ": " + m.What
	}
	return strings.Join(lines, "\n")
}

// patience bounds schemas whose alternatives multiply. Others take milliseconds.
const patience = 5 * time.Second

// Check returns nil if value fits schema; both are JSON texts. The error is a
// [*MismatchError] if the value does not fit, and matches [ErrSchema] if the schema cannot
// be used. Check returns within seconds for any input. A check that it gave up may keep
// running until the process ends.
func Check(schema, value []byte) error {
	c, err := compile(schema)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	v, err := decode(value)
	if err != nil {
		return &MismatchError{[]Mismatch{{"$", err.Error()}}}
	}
	c.deadline = time.Now().Add(patience)
	verdict := make(chan error, 1)
	go func() { verdict <- c.judge(v) }()
	select {
	case err := <-verdict:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%w: checking a value of %d bytes took more than %s: simplify its alternatives", ErrSchema, len(value), patience)
	}
}
