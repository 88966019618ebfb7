package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// Kind is where an item of an inbox is.
type Kind string

// The kinds, in the order in which they are listed.
const (
	Question   Kind = "asks"
	InFlight   Kind = "in flight"
	GivenBack  Kind = "again" // to be delivered again
	Waiting    Kind = "waits"
	Scheduled  Kind = "scheduled"
	DeadLetter Kind = "dead letter"
	Answered   Kind = "answered"
)

// Item is one line of an inbox's page: an entry, or a question. Its texts are not cleaned.
type Item struct {
	Kind
	ID, EntryID    string
	Start          int64  // the offset of a waiting entry in the inbox
	Letter         string // the name of a dead letter
	RunDir, Effect string // of a run's breakpoint, empty if a session asks
	At             time.Time
	Note           string
	Text           string      // the beginning of the text, or of an answered entry's prompt
	Reply          string      // the beginning
	Price          price.Price // the cost so far, over all attempts
}

func (i Item) name() string {
	if i.Kind == Question {
		return words.Short(i.ID)
	}
	return words.Name(i.ID, i.EntryID)
}

const (
	mostWaiting  = 200
	mostLetters  = 100
	mostAnswered = 50
	// mostText is how many bytes of a text are kept. longLine is longer than any line whose text is listed.
	mostText, longLine = 16 << 10, 1 << 20
)

// Entries returns the items of an inbox, and sentences about what is left out.
func Entries(now Inbox) (all []Item, notes []string, err error) {
	box, err := inbox.Open(now.Path(), inbox.Options{})
	if err != nil {
		return nil, nil, err
	}
	all = Asked(now)
	prices, err := book.Read(box)
	if err != nil {
		return all, nil, err
	}
	waits, more, err := waiting(box, prices)
	if err != nil {
		return all, nil, err
	}
	all = append(all, waits...)
	if more {
		notes = append(notes, fmt.Sprintf("only the first %d entries that wait are listed", mostWaiting))
	}
	n := 0
	err = box.EachScheduled(func(s inbox.Scheduled) bool {
		if n++; n > mostWaiting {
			notes = append(notes, fmt.Sprintf("only the first %d scheduled entries are listed", mostWaiting))
			return false
		}
		all = append(all, Item{Kind: Scheduled, ID: s.ID, EntryID: s.EntryID, At: s.NotBefore, Text: begin(s.Text)})
		return true
	})
	letters, more, lettersErr := openLetters(box, prices)
	if more {
		notes = append(notes, fmt.Sprintf("only the last %d dead letters are listed", mostLetters))
	}
	answers, answersErr := answered(box, prices)
	return slices.Concat(all, letters, answers), notes, errors.Join(err, lettersErr, answersErr)
}

// Asked returns the questions that wait for a person.
func Asked(now Inbox) (all []Item) {
	for _, r := range now.Runs {
		text := r.Text
		if r.Effect == "" {
			text = r.Stands(now.Inbox)
		}
		if r.NeedsPerson() {
			all = append(all, Item{Kind: Question, ID: r.Effect, RunDir: r.Dir, Effect: r.Effect, At: r.Since, Note: "run " + r.Run, Text: begin(text)})
		}
	}
	for _, s := range now.Sessions {
		if s.IsAsking() {
			all = append(all, Item{Kind: Question, ID: s.ID, At: s.Asks.At, Note: s.Asks.Kind, Text: begin(s.Asks.Text)})
		}
	}
	return all
}

// waiting returns the entry in flight and those that wait. more means that some are left out.
func waiting(box *inbox.Inbox, prices *book.Prices) (all []Item, more bool, err error) {
	v, err := box.View()
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		item := Item{Kind: InFlight, ID: d.ID(), EntryID: d.EntryID, Start: d.StartOffset, At: d.DeliveredAt, Note: fmt.Sprintf("attempt %d", d.Attempt), Text: begin(d.Text())}
		item.Price, _ = prices.OfDelivery(d)
		all = append(all, item)
	}
	again := v.Redeliver()
	err = v.Waits(func(l []byte) bool {
		if len(l) <= longLine || len(all) > mostWaiting {
			return true
		}
		all = append(all, Item{Kind: Waiting, Note: fmt.Sprintf("%d bytes", len(l)), Text: begin(string(l[:min(len(l), mostText)]))})
		return false
	}, func(w inbox.Waiting) bool {
		if more = len(all) > mostWaiting; more {
			return false
		}
		item := Item{Kind: Waiting, ID: w.ID, EntryID: w.EntryID, Start: w.Start, At: w.SentAt(), Note: strings.Join(history.Special(w, recovery.InvalidLimits(w.Entry, account.Of(v).IsRaised) != nil), ", "), Text: begin(w.Text)}
		if again != nil && again.StartOffset == w.Start {
			item.Kind, item.Note = GivenBack, fmt.Sprintf("attempt %d", w.Attempt)
			item.Price, _ = prices.OfDelivery(again)
		}
		all = append(all, item)
		return true
	})
	return all, more, err
}

// openLetters returns the last letters that can be requeued, newest first, also what a person canceled.
func openLetters(box *inbox.Inbox, prices *book.Prices) (all []Item, more bool, err error) {
	var letters []inbox.Letter
	_, err = outcomes.EachLetter(box, func(l inbox.Letter) bool {
		if l.Open() {
			letters = append(letters, l)
		}
		if len(letters) > mostLetters {
			letters, more = letters[1:], true
		}
		return true
	})
	for _, l := range slices.Backward(letters) {
		all = append(all, Item{
			Kind: DeadLetter, ID: l.ID, EntryID: l.EntryID, Letter: l.Letter, At: l.DeadLetteredAt, Note: l.Reason.Why(l.Failure),
			Text: begin(l.Text()), Price: prices.Of(l.EntryID, l.FirstSeq, l.Cost),
		})
	}
	return all, more, err
}

// answered returns the last results, newest first.
func answered(box *inbox.Inbox, prices *book.Prices) (all []Item, err error) {
	_, err = history.Results(box).Each(mostAnswered, func(r inbox.Result, _ []byte) {
		all = append(all, Item{
			Kind: Answered, ID: r.ID, EntryID: r.EntryID, Start: r.StartOffset, At: r.AcknowledgedAt,
			Text: begin(r.Prompt), Reply: begin(r.Answer()), Price: prices.Of(r.EntryID, r.FirstSeq, r.Cost),
		})
	})
	slices.Reverse(all)
	return all, err
}

func begin(text string) string {
	if len(text) <= mostText {
		return text
	}
	return text[:mostText] + " …"
}
