package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/internal/words"

	"heartbeat/inbox"
)

// purge asks without the lock in hand, so the letters are chosen before: what
// comes meanwhile stays.
func (o *letterFlags) purge(named []string, s streams) error {
	if !o.yes && !isTerminal(s.in) {
		return usageError{errors.New("what is purged is gone for good, and nobody is there to be asked: add --yes")}
	}
	box, err := o.open()
	if err != nil {
		return err
	}
	var chosen []inbox.Letter
	err = inTransaction(box, s, func(*inbox.Tx) (err error) {
		chosen, err = o.choosePurged(box, named, s)
		return err
	})
	if err != nil {
		return err
	}
	if !o.yes && len(chosen) > 0 {
		if err := confirm(fmt.Sprintf("throw %s away for good?", words.Count(len(chosen), "dead letter", "dead letters")), s); err != nil {
			return err
		}
	}
	err = inTransaction(box, s, func(tx *inbox.Tx) (err error) {
		if chosen, err = stillThere(box, chosen); err != nil {
			return err
		}
		return tx.Purge(chosen)
	})
	if err != nil {
		return err
	}
	return o.reportPurged(chosen, s)
}

func (o *letterFlags) choosePurged(box *inbox.Inbox, named []string, s streams) ([]inbox.Letter, error) {
	letters, warnings, err := box.Letters()
	s.warn(warnings)
	switch {
	case err != nil || o.all:
		return letters, err
	case o.requeued:
		return slices.DeleteFunc(letters, func(l inbox.Letter) bool { return !isRequeued(l) }), nil
	}
	return chooseLetters(named, letters, false)
}

// stillThere leaves out what somebody else purged meanwhile.
func stillThere(box *inbox.Inbox, chosen []inbox.Letter) ([]inbox.Letter, error) {
	letters, _, err := box.Letters()
	there := map[string]bool{}
	for _, l := range letters {
		there[l.Letter] = true
	}
	return slices.DeleteFunc(chosen, func(l inbox.Letter) bool { return !there[l.Letter] }), err
}

// confirm asks a person, and takes no answer for a no.
func confirm(question string, s streams) error {
	fmt.Fprintf(s.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		if err == nil {
			return nil
		}
	}
	return errors.New("nothing was purged")
}

func (o *letterFlags) reportPurged(letters []inbox.Letter, s streams) error {
	if o.json {
		return printLetters(letters, s)
	}
	for _, l := range letters {
		if _, err := fmt.Fprintf(s.out, "purged %s (%s)\n", l.Letter, nameOfLetter(l)); err != nil {
			return err
		}
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(s.out, "there is nothing to purge")
		return err
	}
	return nil
}
