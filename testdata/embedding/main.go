// Command embedding is a program of another module that uses the queue as a library: it sends
// an entry, delivers it to itself, and reads the result.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

func main() {
	dir, err := os.MkdirTemp("", "embedding-")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), filepath.Join(dir, "inbox.jsonl"))
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		return err
	}
	sent, err := box.Append(ctx, inbox.Message{ID: "job-1", Text: "name three cats"}, time.Second)
	if err != nil {
		return err
	}
	if err := work(ctx, box); err != nil {
		return err
	}
	outcome, err := outcomes.Await(ctx, box, sent, 0)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", sent.ID, outcome.Result.Answer())
	return nil
}

// work delivers the next entry, and acknowledges it.
func work(ctx context.Context, box *inbox.Inbox) error {
	tx, err := box.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Close()
	entry, err := tx.Next(inbox.Mark{})
	if err != nil {
		return err
	}
	if _, err := tx.Deliver(entry, inbox.Recipient{}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil { // durable: now the entry may be handed over
		return err
	}
	if err := tx.Acknowledge("Tom, Kit and Ada"); err != nil {
		return err
	}
	return tx.Commit()
}
