package session

import (
	"errors"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/queue"
)

// Entries counts a session's entries as they are now, by its inbox. It takes no lock
// and may be called by any process.
func Entries(f folder.Folder, s folder.State) (folder.Entries, error) {
	o := queueOptions(f, s, nil)
	o.Hook = "heartbeat-stop" // none is wired
	q, err := queue.Open(o)
	if err != nil {
		return folder.Entries{}, err
	}
	fates, err := q.Fates()
	return counted(fates), errors.Join(err, q.Close())
}
