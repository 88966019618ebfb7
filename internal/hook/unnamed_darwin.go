package hook

import (
	"errors"
	"os"
)

// unnamedFile is a file that only its descriptor reaches.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "heartbeat-input-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
