package meter

import (
	"math"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
)

// ledger is what was charged to a session since its client last stated its own total. The transcript has no usage of
// summaries. Their cost is the part of the next total that no other request took.
type ledger struct {
	charged int64        // billionths of a dollar, guesses included
	broken  bool         // the next total covers something else too
	guesses []price.Line // a line for each turn with summaries
}

const maxGuesses = 16 // limits the guesses of a ledger, which is part of every record

// ledgerOf reads what [ledger.text] wrote. If that is empty, whole says whether a ledger may begin here.
func ledgerOf(text string, whole bool) (g ledger) {
	if text == "" {
		return ledger{broken: !whole}
	}
	head, rest, _ := strings.Cut(text, "\n")
	var err error
	if g.charged, err = strconv.ParseInt(head, 10, 64); err != nil || g.charged < 0 {
		return ledger{broken: true}
	}
	for l := range strings.Lines(rest) {
		guess, err := price.ParseLine([]byte(l))
		if err != nil {
			return ledger{broken: true}
		}
		g.guesses = append(g.guesses, guess)
	}
	return g
}

func (g *ledger) text() string {
	if g.broken {
		return account.BrokenLedger
	}
	text := strconv.FormatInt(g.charged, 10)
	for _, guess := range g.guesses {
		text += "\n" + string(guess.JSON())
	}
	return text
}

// addTurn adds what a turn has cost. It returns what summaries cost beyond their guesses, if the turn has a total, and what
// was spent on prompts of no entry.
func (g *ledger) addTurn(t *turn) (owed []account.Uncharged) {
	for _, p := range t.parts {
		g.add(t.Turn, p)
		if p.Spent.ClientNanos > 0 {
			owed = append(owed, g.owed(p.Spent.ClientNanos)...)
			*g = ledger{}
		}
	}
	if len(t.other.Models) > 0 {
		owed = append(owed, account.Uncharged{Line: t.other.line(""), Before: t.other.Before})
	}
	return owed
}

func (g *ledger) add(t account.Turn, p Part) {
	if p.Spent.Unpriced > 0 || p.Own || p.Other != nil || p.Spent.Nanos > math.MaxInt64-g.charged {
		g.broken = true
	}
	if g.broken {
		return
	}
	g.charged += p.Spent.Nanos
	last := len(g.guesses) - 1
	switch {
	case p.Guess.Nanos == 0:
	case last >= 0 && g.guesses[last].DeliveredSeq == t.DeliveredSeq:
		g.guesses[last].Nanos += p.Guess.Nanos
	default:
		cost := price.Price{Amount: price.Amount{Nanos: p.Guess.Nanos, Dollars: true}, Model: p.Guess.Model}
		g.guesses = append(g.guesses, price.Line{At: time.UnixMilli(max(1, p.At)), Charged: t.Charged, Price: cost})
		g.broken = len(g.guesses) > maxGuesses
	}
}

// owed distributes over the guesses the part of the total beyond the charged sum. A smaller total takes nothing back.
func (g *ledger) owed(total int64) (all []account.Uncharged) {
	beyond, guessed := total-g.charged, int64(0)
	for _, guess := range g.guesses {
		guessed += guess.Nanos
	}
	if g.broken || beyond <= 0 {
		return nil
	}
	for _, of := range g.guesses {
		guess := of.Nanos
		of.Nanos = min(beyond, int64(math.Round(float64(beyond)*(float64(guess)/float64(guessed)))))
		beyond, guessed = beyond-of.Nanos, guessed-guess // the last one gets the rest
		all = append(all, account.Uncharged{Line: of})
	}
	return all
}
