package transcript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

func TestMain(m *testing.M) {
	crash.EveryNth = long.Rounds(3, 1)
	crash.Main(m, map[string]func() int{"session": session, "recover": recoverIt, "large": large50})
}

// session hosts a session in a folder (argument 1): it appends so many messages
// (argument 2), prints the number of each that was accepted, and closes the store.
func session() int {
	o := in(os.Args[1])
	count, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		return fail(err)
	}
	s := Open(o)
	for n := s.Last() + 1; n <= count; n++ {
		s.Append(message(n))
		crash.Promise(strconv.FormatInt(n, 10))
		fmt.Println(n)
	}
	return fail(closed(s))
}

func recoverIt() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return fail(Recover(ctx, in(os.Args[1])))
}

func closed(s *Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Close(ctx)
}

// lostSome is the exit status of a session that says that it lost messages.
const lostSome = 3

func fail(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, ErrLost) {
		return lostSome
	}
	return 1
}
