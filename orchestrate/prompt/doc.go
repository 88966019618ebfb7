// Package prompt writes what the agent is told about a run that it works for: one
// text for each effect that the run asks for, one for its end, one for its failure.
//
// A text says what is asked, where the whole task stands, and the very command that
// hands the result over. What comes from the task is fenced, with a fence longer
// than any in it, so that nothing in it can pass for our words.
package prompt
