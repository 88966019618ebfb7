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
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/machine"
	_ "heartbeat/internal/money/account" // as in the commands: each record has an account, also where a test kills
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// TestMain runs the tests, or in a child one of these commands on the inbox that its first argument names.
func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = true // TestOnlyWhatWasWrittenHereCounts covers the rest
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

// child returns a run of a command on the inbox.
func child(name string, box *inbox.Inbox, args ...string) crash.Command {
	return crash.Command{Name: name, Args: append([]string{box.Path()}, args...)}
}

// untilInputEnds waits for the parent's signal to continue.
func untilInputEnds() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
}

// holdLock keeps a transaction open until its input ends.
func holdLock(box *inbox.Inbox) error {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("held")
	untilInputEnds()
	return tx.Close()
}

// printView looks at the inbox as a user who can read everything and write nothing.
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

// nobody is a user other than root.
const nobody = 65534

// workThrough appends entries like `echo >>` and answers them until its input ends. Each answer and
// the next delivery are one commit.
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

// consumeAll takes all outcomes as consumer mail, and prints each before it confirms it.
func consumeAll(box *inbox.Inbox) error {
	c, err := outcomes.Consume(context.Background(), box, "mail", false, 0)
	if err != nil {
		return err
	}
	for err == nil {
		var h *outcomes.Handover
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

// awaitNamed waits for the existing entry of that name.
func awaitNamed(box *inbox.Inbox) error {
	r, err := box.Append(context.Background(), inbox.Message{Text: "x", ID: os.Args[2]}, 0)
	if err != nil {
		return err
	}
	fmt.Println(r.Found)
	o, err := outcomes.Await(context.Background(), box, r, 0)
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

// promote moves due entries once its input ends.
func promote(box *inbox.Inbox) error {
	fmt.Println("ready")
	untilInputEnds()
	return box.Promote(context.Background())
}
