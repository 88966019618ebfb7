// Command session makes the hook's writes at the end of each turn, which takes no time: it acknowledges what was
// given, and gives what is next. It is built in the commit that it is a session of.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/inbox"
)

func main() {
	box, err := inbox.Open(os.Args[1], inbox.Options{LockWait: time.Minute})
	if err != nil {
		panic(err)
	}
	for changes := box.Watch(5 * time.Second); ; {
		gave, err := turn(box)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if !gave {
			<-changes.C
		}
	}
}

func turn(box *inbox.Inbox) (gave bool, err error) {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if tx.InFlight() != nil {
		err = tx.Acknowledge("done, and the tests pass")
	}
	e, none := tx.Next(inbox.Mark{})
	if gave = none == nil; gave && err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	}
	if err == nil && tx.Dirty() {
		err = tx.Commit()
	}
	return gave, err
}
