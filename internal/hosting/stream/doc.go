// Package stream reads what a client prints with --output-format stream-json: one
// JSON object a line. [Reader] makes messages of the lines and goes on behind
// whatever is no message; [Tally] adds up what the messages say about the session.
package stream
