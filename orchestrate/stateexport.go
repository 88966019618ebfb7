package orchestrate

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"heartbeat/internal/disk"
)

// SessionVariable is the environment variable that tells the CLI and its hooks their session.
const SessionVariable = "BABYSITTER_SESSION_ID"

// ExportSession makes the client set [SessionVariable] for the commands of its session. It adds a line to the shell script that
// the client names in CLAUDE_ENV_FILE, unless the script already ends up with this id. The file is the client's, so
// a symbolic link is followed; a missing file is made with mode 0600. ExportSession refuses an id that [StateFileAt] refuses, so
// the id needs no quoting.
func ExportSession(envFile, id string) (err error) {
	if !validID(id) {
		return fmt.Errorf("export session %.200q: %w", id, ErrSessionID)
	}
	f, _, err := disk.OpenAppend(envFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := f.ReadUpTo(maxScript)
	if err != nil {
		return err
	}
	script, line := string(b), "export "+SessionVariable+`="`+id+`"`
	if exported(script) == line {
		return nil
	}
	if script != "" && !strings.HasSuffix(script, "\n") {
		line = "\n" + line
	}
	_, err = f.Append([]byte(line + "\n"))
	return err
}

// maxScript is more than any such script needs, in bytes.
const maxScript = 16 << 20

// exported returns the last line of a script that sets the variable, or "".
func exported(script string) (line string) {
	for l := range strings.Lines(script) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(strings.TrimPrefix(l, "export "), SessionVariable+"=") {
			line = l
		}
	}
	return line
}

// PromiseIn returns the text between the first <promise> of a message and the next </promise>, trimmed, with runs of
// white space collapsed to one space. ok is false if there is no such pair. Only the first pair counts, as with the
// CLI.
func PromiseIn(message string) (value string, ok bool) {
	_, rest, opened := strings.Cut(message, "<promise>")
	value, _, closed := strings.Cut(rest, "</promise>")
	if !opened || !closed {
		return "", false
	}
	return strings.Join(strings.FieldsFunc(value, isSpace), " "), true
}

// PromiseKept reports whether the message promises the proof. An empty proof is never promised.
func PromiseKept(message, proof string) bool {
	value, ok := PromiseIn(message)
	return ok && proof != "" && subtle.ConstantTimeCompare([]byte(value), []byte(proof)) == 1
}
