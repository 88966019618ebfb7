package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// guardFor is how long a guardian brings what is left. Where it is longer, the next
// host beside the database does.
const guardFor = 7 * 24 * time.Hour

// FinishAll is what a guardian does after its host's death: [Finish], and again until
// nothing is left that could be brought to the guild. args are what follows
// [FinishCommand]: the session's folder, the time between two attempts, and, for another
// attempt than the first one, when that was. It returns the exit status.
func FinishAll(args []string) int {
	if err := finishAll(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func finishAll(args []string) error {
	if len(args) < 2 {
		return errors.New("name a session's folder, and the time between two attempts")
	}
	every, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	first := time.Now().Unix()
	if len(args) > 2 {
		if first, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return err
		}
		time.Sleep(every)
	}
	o, err := Finish(context.Background(), args[0], true)
	if isUnfinished(o, err) && time.Since(time.Unix(first, 0)) < guardFor {
		// A process that has done nothing yet is a small one to wait in.
		command := []string{os.Args[0], FinishCommand, args[0], args[1], strconv.FormatInt(first, 10)}
		return syscall.Exec("/proc/self/exe", command, os.Environ())
	}
	if errors.Is(err, ErrHosted) || errors.Is(err, ErrFinished) {
		return nil
	}
	return err
}

// isUnfinished reports whether another attempt may do more. A host that could not write its
// record, on a full disk, still stands there as it ends.
func isUnfinished(o Outcome, err error) bool {
	return o.Left || errors.Is(err, ErrUnkept) || errors.Is(err, ErrHosted) || Passes(err)
}
