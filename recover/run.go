package recover

import (
	"context"
	"errors"

	"heartbeat/inbox"
)

// Run settles what a session left in flight, and cleans up its leftovers. It is
// safe beside a live hook and beside itself. State that nobody should have
// written (an error that matches [inbox.ErrCorrupt]) is left untouched.
func Run(ctx context.Context, box *inbox.Inbox, o Options) (report Report, err error) {
	tx, err := box.Begin(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	report, err = Settle(tx, o)
	if err == nil {
		err = tx.Commit()
	}
	report.Cursor, report.Warnings = tx.Cursor(), tx.Warnings()
	return report, err
}
