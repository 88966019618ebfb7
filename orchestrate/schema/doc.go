// Package schema checks a result against the JSON Schema that a task asks for, and
// says what is wrong with it in words that can be handed to a model.
//
// Draft 2020-12 and draft-07 are told apart by $schema. A schema that names neither
// is taken for draft-07 if it has the older form of a tuple (items with a list), or
// else for 2020-12. The drafts before either are read as it.
//
// # Limits
//
// Nothing is ever fetched: a reference leads to a place in the schema itself ("#..."),
// or else the schema is refused. So are $dynamicRef, an $id below the root,
// references that lead back to themselves without going down into the value, and
// what is too large, too deep or takes too long. `format` is not looked at, and a
// pattern is one of Go's regexp. What is refused matches [ErrSchema].
package schema
