// Package schema checks a result against the JSON Schema that a task asks for, and
// says what is wrong with it in words that can be handed to a model.
//
// $schema tells draft 2020-12 from draft-07. A schema without $schema is read as draft-07
// if it has the older form of a tuple (items with a list), and otherwise as 2020-12. Drafts
// 2019-09 and before are read as the next of these two.
//
// # Limits
//
// Nothing is ever fetched: a reference must lead to a place in the schema itself ("#...").
// A schema is refused if it has another reference, a $dynamicRef, an $id below the root, or
// references that lead back to themselves without descending into the value, and if it is
// too large, too deep or too slow. `format` is ignored, and a pattern is a regular
// expression of Go. Errors about the schema match [ErrSchema].
//
// # The library
//
// The library says whether a value fits, and names one place of the schema that it breaks.
// The places in the value are found by this package, which asks the library about parts of
// it. github.com/santhosh-tekuri/jsonschema/v6 reports all places itself, but compiles its
// meta-schemas when a program starts: that adds 5.6 ms to the 3 ms of every command.
package schema
