package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The places of an entry. A claim is 61 bits of an entry's id and a place, so that a million claims take 8 MB.
const (
	queued uint64 = iota
	inFlight
	scheduled
	answered
	setAside
	dealtWith // the dead letter was requeued or accepted
	told      // an event says what became of the entry
	settled   // the entry's line is before the cursor
	places
)

// claims are split by their first byte, so that no large piece of memory has to grow.
type claims [256][]uint64

func (c *claims) add(entryID string, place uint64) {
	if key, err := strconv.ParseUint(entryID[:min(16, len(entryID))], 16, 64); err == nil {
		c[key>>56] = append(c[key>>56], key&^(places-1)|place)
	}
}

const mostNamed = 5 // how many entries each kind of finding names

// outOfPlace reports entries that are in more than one place, or in none.
func (c *entryCheck) outOfPlace() {
	named := map[string][]string{} // by what is wrong
	count := map[string]int{}
	for _, all := range c.claims {
		slices.Sort(all)
		for i := 0; i < len(all); {
			var n [places]int
			key := all[i] &^ (places - 1)
			for ; i < len(all) && all[i]&^(places-1) == key; i++ {
				n[all[i]&(places-1)]++
			}
			wrong := wrongPlaces(n)
			if wrong == "" {
				continue
			}
			if count[wrong]++; count[wrong] <= mostNamed {
				named[wrong] = append(named[wrong], fmt.Sprintf("%016x", key)[:12])
			}
		}
	}
	for _, wrong := range slices.Sorted(maps.Keys(named)) {
		names := strings.Join(named[wrong], ", ")
		if more := count[wrong] - mostNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		log, by := quote("heartbeat", "log", "--inbox", c.inbox, named[wrong][0]), byHand
		fix := log + " shows where, and `heartbeat dead-letter` and `heartbeat cancel` take one away"
		switch wrong {
		case nowhere:
			fix = log + " shows what is known; send it again if it is still wanted"
		case waitsToo:
			fix, by = c.repair+", and it is passed without a turn", passing
		}
		c.as("entries").fail(fix, "%s: %s", names, wrong)
		c.mend(by)
	}
}

const (
	nowhere  = "settled in the inbox, and neither a result, a dead letter nor an event says how"
	waitsToo = "it waits in the inbox, and was settled before: it would be done again"
)

// wrongPlaces returns what is wrong with an entry that is in each place n times, or "".
func wrongPlaces(n [places]int) string {
	open := max(0, n[setAside]-n[dealtWith])
	live := n[queued] + n[inFlight] + n[scheduled]
	switch {
	case n[settled] > 0 && live+n[answered]+n[setAside]+n[dealtWith]+n[told] == 0:
		return nowhere
	case live == n[queued] && live > 0 && n[answered]+open > 0:
		return waitsToo
	case live > 1 || live == 1 && n[answered]+open > 0:
		return fmt.Sprintf("in more than one place: %s", where(n, open))
	case n[answered] > 1 || n[answered] == 1 && open > 0:
		return fmt.Sprintf("settled more than once: %s", where(n, open))
	}
	return ""
}

func where(n [places]int, open int) string {
	var all []string
	for _, p := range []struct {
		n    int
		name string
	}{{n[queued], "in the queue"}, {n[inFlight], "in flight or given back"}, {n[scheduled], "scheduled"}, {n[answered], "among the results"}, {open, "among the open dead letters"}} {
		if p.n > 1 {
			p.name = fmt.Sprintf("%d times %s", p.n, p.name)
		}
		if p.n > 0 {
			all = append(all, p.name)
		}
	}
	return strings.Join(all, ", ")
}
