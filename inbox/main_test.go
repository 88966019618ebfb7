package inbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// TestMain runs the tests, or in a child one of these commands over the inbox
// that its first argument names.
func TestMain(m *testing.M) {
	inbox.TestOnlyTrustAll = true // see TestOnlyWhatWasWrittenHereCounts for the rest
	crash.EveryNth = long.Rounds(20, 1)
	crash.Main(m, map[string]func() int{
		"hold":    command(holdLock),
		"view":    command(printView),
		"work":    command(workThrough),
		"await":   command(awaitNamed),
		"promote": command(promote),
		"beside":  command(sendBeside),
		"self":    command(sendSelf),
		"late":    command(lateStep),
		"turn":    command(answerAndDeliver),
		"consume": command(consumeAll),
	})
}

func command(run func(box *inbox.Inbox) error) func() int {
	return func() int {
		box, err := inbox.Open(os.Args[1], inbox.Options{})
		if err == nil {
			err = run(box)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// child is a run of a command over the inbox.
func child(name string, box *inbox.Inbox, args ...string) crash.Command {
	return crash.Command{Name: name, Args: append([]string{box.Path()}, args...)}
}

// untilInputEnds is how a child is told to go on.
func untilInputEnds() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
}

// holdLock has a transaction open until its input ends.
func holdLock(box *inbox.Inbox) error {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("held")
	untilInputEnds()
	return tx.Close()
}

// printView looks at the inbox as a user who can read everything and write
// nothing.
func printView(box *inbox.Inbox) error {
	if os.Geteuid() == 0 {
		if err := unix.Setuid(nobody); err != nil {
			return err
		}
	}
	v, err := box.View()
	if err != nil {
		return err
	}
	b, err := v.Backlog(context.Background())
	fmt.Println(v.Cursor(), v.InFlight().Text(), b.Entries)
	return errors.Join(err, v.Close())
}

// nobody is a user who is not root.
const nobody = 65534

// workThrough appends entries as `echo >>` does and answers them, each answer
// and the next delivery in one commit, until its input ends.
func workThrough(box *inbox.Inbox) error {
	ended := make(chan struct{})
	go func() {
		untilInputEnds()
		close(ended)
	}()
	fmt.Println("ready")
	for n := 0; ; n++ {
		select {
		case <-ended:
			return nil
		default:
		}
		if err := errors.Join(appendRaw(box.Path(), fmt.Sprint("entry ", n)), answerAndDeliver(box)); err != nil {
			return err
		}
	}
}

func answerAndDeliver(box *inbox.Inbox) (err error) {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if tx.InFlight() != nil {
		if err := tx.Acknowledge("done"); err != nil {
			return err
		}
	}
	e, err := tx.Next(inbox.Mark{})
	if err != nil {
		return err
	}
	if _, err := tx.Deliver(e, inbox.Recipient{SessionID: "s"}); err != nil {
		return err
	}
	return tx.Commit()
}

// consumeAll is handed all there is, as mail, and prints each before it says so.
func consumeAll(box *inbox.Inbox) error {
	c, err := box.Consume(context.Background(), "mail", false, 0)
	if err != nil {
		return err
	}
	for err == nil {
		var h *inbox.Handover
		if h, err = c.Next(); err != nil || h == nil {
			break
		}
		fmt.Println(h.EntryID, h.Key)
		if err = c.Failed(errors.New("not at once"), 0); err == nil {
			err = c.Done()
		}
	}
	return errors.Join(err, c.Close())
}

// awaitNamed waits for the entry of that name, which is there.
func awaitNamed(box *inbox.Inbox) error {
	r, err := box.Append(context.Background(), inbox.Message{Text: "x", ID: os.Args[2]}, 0)
	if err != nil {
		return err
	}
	fmt.Println(r.Found)
	o, err := box.Await(context.Background(), r, 0)
	switch {
	case err != nil:
		return err
	case o.Result != nil:
		fmt.Println(o.Result.Reply)
	default:
		fmt.Println(o.DeadLetter.Reason)
	}
	return nil
}

// promote moves what is due, once its input ends.
func promote(box *inbox.Inbox) error {
	fmt.Println("ready")
	untilInputEnds()
	return box.Promote(context.Background())
}
