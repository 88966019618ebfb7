// Package act does what a person asked for, by the verb of heartbeat that does it: what a
// key does and what the verb does are the same.
package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/cli"
)

const (
	// limit is longer than a verb waits for the lock, and than a step of a run may take.
	limit = 10 * time.Minute
	// most is how much of a verb's output is kept, in bytes.
	most = 64 << 10
)

// Run runs heartbeat with these arguments, and returns the sentence that it prints. The
// error is the sentence that it complains with.
func Run(ctx context.Context, args []string) (said string, err error) {
	path, err := cli.Beside("heartbeat")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, complaint head
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// It is not the terminal's: a key there that stops or interrupts the display is none
	// for the verb, which ends what it has begun.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	said = sentence(out.String())
	why := strings.TrimPrefix(sentence(complaint.String()), "heartbeat: ")
	var exit *exec.ExitError
	switch {
	case err == nil && said == "":
		return why, nil
	case err == nil:
		return said, nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("heartbeat %s took longer than %s, and was ended: see heartbeat status", args[0], limit)
	case errors.As(err, &exit) && why != "":
		return "", errors.New(why)
	}
	return "", fmt.Errorf("run heartbeat %s: %w", args[0], err)
}

// sentence is output on one line.
func sentence(output string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(output), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// head keeps the beginning of what is written.
type head struct{ bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	if room := most - h.Len(); room > 0 {
		h.Buffer.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}
