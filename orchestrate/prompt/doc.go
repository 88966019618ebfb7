// Package prompt writes what the agent reads about a run: one text for each effect that the
// run asks for, one for the end of the run, and one for its failure.
//
// A text says what is asked, where the whole task is, and which command hands the result
// over. Everything that comes from the task is in a fence that is longer than any fence in
// it, so that nothing in the task can pass for heartbeat's own words.
package prompt
