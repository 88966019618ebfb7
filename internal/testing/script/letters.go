package script

import (
	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// Letters returns all dead letters, in memory at once.
func Letters(box *inbox.Inbox) (all []inbox.Letter, warnings []string, err error) {
	warnings, err = outcomes.EachLetter(box, func(l inbox.Letter) bool {
		all = append(all, l)
		return true
	})
	return all, warnings, err
}
