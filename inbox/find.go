package inbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"heartbeat/internal/disk"
)

// find says where the entry of that envelope id is: "in flight", "queued",
// "answered", or nothing. It reads the results and what waits in the queue.
func (t *Tx) find(id string) (string, error) {
	if t.inFlight != nil && t.inFlight.ID() == id {
		return "in flight", nil
	}
	if r := t.redeliver; r != nil && r.ID() == id {
		return "queued", nil
	}
	answered, err := t.box.answered(id)
	if err != nil {
		return "", err
	}
	if answered {
		return "answered", nil
	}
	if t.file == nil {
		return "", nil
	}
	waits := io.NewSectionReader(t.file, t.st.Cursor, t.size()-t.st.Cursor)
	queued, err := anyLine(waits, id, func(l []byte) bool {
		found, _, _ := decodeLine(l)
		return found == id
	})
	if queued {
		return "queued", err
	}
	return "", err
}

func (b *Inbox) answered(id string) (found bool, err error) {
	f, err := disk.OpenRead(b.file(resultsName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return anyLine(io.NewSectionReader(f, 0, f.Info().Size), id, func(l []byte) bool {
		var r struct {
			ID string `json:"id"`
		}
		return json.Unmarshal(l, &r) == nil && r.ID == id
	})
}

// anyLine looks for a line that matches, and leaves out those that cannot hold
// the JSON string id: a line that has neither its plain form nor an escape.
func anyLine(r io.Reader, id string, match func([]byte) bool) (bool, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for {
		l, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if len(long) <= MaxLine { // a longer one is no entry
				long = append(long, l...)
			}
			continue
		}
		if len(long) > 0 {
			l = append(long, l...)
			long = nil
		}
		if (bytes.Contains(l, []byte(id)) || bytes.IndexByte(l, '\\') >= 0) && match(bytes.TrimRight(l, "\r\n")) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
