package session

import (
	"errors"
	"fmt"
	"strings"

	"heartbeat/internal/disk"
)

// Variable is the environment variable by which the CLI and its hooks know the
// session that they are in.
const Variable = "BABYSITTER_SESSION_ID"

// Export has the client set [Variable] for what its session runs, by a line in the
// file that it names in CLAUDE_ENV_FILE, a shell script. A file whose last word on
// the variable is this id is left as it is. The file is the client's, so a symbolic
// link is followed; one that is missing is made with mode 0600. An id that [At]
// refuses is refused here too, so nothing in it needs quoting.
func Export(envFile, id string) error {
	if !validID(id) {
		return fmt.Errorf("export session %.200q: %w", id, ErrID)
	}
	f, _, err := disk.OpenAppend(envFile)
	if err != nil {
		return err
	}
	return errors.Join(export(f, id), f.Close())
}

// maxScript is more than any file has that a client names.
const maxScript = 16 << 20

func export(f *disk.File, id string) error {
	b, err := f.ReadUpTo(maxScript)
	if err != nil {
		return err
	}
	script, line := string(b), "export "+Variable+`="`+id+`"`
	if exported(script) == line {
		return nil
	}
	if script != "" && !strings.HasSuffix(script, "\n") {
		line = "\n" + line
	}
	_, err = f.Append([]byte(line + "\n"))
	return err
}

// exported is the last line of a script that sets the variable.
func exported(script string) (line string) {
	for l := range strings.Lines(script) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(strings.TrimPrefix(l, "export "), Variable+"=") {
			line = l
		}
	}
	return line
}
