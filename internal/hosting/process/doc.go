// Package process runs the client of a hosted session, and ends it together with
// everything that it started.
package process
