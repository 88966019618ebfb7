package schema

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrSchema says that a schema itself cannot be used, so that nothing can be said
// of any value.
var ErrSchema = errors.New("not a usable schema")

// Mismatch is one thing that is wrong with a value.
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

// patience is for schemas whose alternatives multiply: others take milliseconds.
const patience = 5 * time.Second

// Check returns nil if value, a JSON text, fits the schema, another one. A value
// that does not gives a [*MismatchError]; a schema that cannot be used, an error
// that matches [ErrSchema]. It returns within seconds whatever it is given, but what
// it gave up on may go on for as long as the process lives.
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
