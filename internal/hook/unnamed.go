package hook

import (
	"errors"
	"os"
)

// unlinkedFile is a file in the folder for temporary files that only its descriptor
// reaches.
func unlinkedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "heartbeat-input-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
