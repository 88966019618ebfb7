// Package statusline is heartbeat-meter, the command that a session's statusLine runs:
// it books what the client says to the session's meter, and then becomes the status
// line that the person had before.
//
// The client starts it after each answer of the model and shows what it prints. It is
// silent on errors: what is lost comes with the next reading.
package statusline
