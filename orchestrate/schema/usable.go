package schema

import "fmt"

// Usable returns nil if values can be checked against the schema, and otherwise an
// error that matches [ErrSchema] and says what is wrong with it.
func Usable(schema []byte) error {
	if _, err := compile(schema); err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return nil
}
