package inbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// exampleInbox creates an inbox with this content in a directory of its own.
func exampleInbox(content string) (box *inbox.Inbox, remove func()) {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "inbox.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		log.Fatal(err)
	}
	box, err = inbox.Open(path, inbox.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return box, func() { os.RemoveAll(dir) }
}

// A consumer acknowledges the entry that it has answered and takes the next one, in one
// transaction. It passes the text on only once that is durable.
func Example() {
	box, remove := exampleInbox("first\n{\"prompt\":\"second\",\"id\":\"job-2\"}\n")
	defer remove()

	turn := func(reply string) (text string, err error) {
		tx, err := box.Begin(context.Background())
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, tx.Close()) }()
		if tx.InFlight() != nil {
			if err := tx.Acknowledge(reply); err != nil {
				return "", err
			}
		}
		entry, err := tx.Next(inbox.Mark{})
		switch {
		case errors.Is(err, inbox.ErrEmpty):
			return "", tx.Commit()
		case err != nil:
			return "", err
		}
		if _, err := tx.Deliver(entry, inbox.Recipient{SessionID: "s1"}); err != nil {
			return "", err
		}
		return entry.Text, tx.Commit()
	}

	text, err := turn("")
	for ; err == nil && text != ""; text, err = turn("re: " + text) {
		fmt.Println(text)
	}
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// first
	// second
}

// A producer appends an entry, and looks for its result by the id.
func ExampleInbox_Append() {
	box, remove := exampleInbox("")
	defer remove()

	message := inbox.Message{ID: "job-7", Text: "two\nlines", Metadata: map[string]any{"from": "ci"}}
	for range 2 { // sending again is safe
		receipt, err := box.Append(context.Background(), message, 0)
		if err != nil {
			log.Fatal(err)
		}
		if receipt.Appended {
			fmt.Println(receipt.ID, "appended")
		} else {
			fmt.Println(receipt.ID, receipt.Found)
		}
	}

	consume(box)

	file, err := os.Open(box.ResultsPath())
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var result inbox.Result
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			log.Fatal(err)
		}
		if result.ID == "job-7" {
			fmt.Printf("%s %s: %s\n", result.ID, result.Metadata["from"], result.Reply)
		}
	}
	// Output:
	// job-7 appended
	// job-7 queued
	// job-7 "ci": done
}

// consume delivers the next entry and acknowledges it at once.
func consume(box *inbox.Inbox) {
	tx, err := box.Begin(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Close()
	entry, err := tx.Next(inbox.Mark{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := tx.Deliver(entry, inbox.Recipient{}); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(tx.Acknowledge("done"), tx.Commit()); err != nil {
		log.Fatal(err)
	}
}

// A launcher settles what the previous session left in flight.
func Example_recovery() {
	box, remove := exampleInbox("flaky\nnext\n")
	defer remove()

	for range 3 {
		tx, err := box.Begin(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		entry, err := tx.Next(inbox.Mark{})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := tx.Deliver(entry, inbox.Recipient{SessionID: "s1"}); err != nil {
			log.Fatal(err)
		}
		if err := errors.Join(tx.Commit(), tx.Close()); err != nil {
			log.Fatal(err)
		}

		// Here the session dies. The next launch begins with:
		report, err := recovery.Run(context.Background(), recovery.Asker{
			Box: box, Settings: recovery.Settings{Policy: recovery.Retry, MaxAttempts: 2},
		}, recovery.Sight{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report)
	}
	// Output:
	// the entry bdbb9deb8e39, attempt 1, will be delivered again
	// the entry bdbb9deb8e39, attempt 2, is a dead letter (attempts exhausted)
	// the entry c6c1c9a9c854, attempt 1, will be delivered again
}
