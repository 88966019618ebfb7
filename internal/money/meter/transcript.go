package meter

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
	"heartbeat/internal/money/price"
)

const (
	maxLine = 16 << 20 // a longer line is passed over
	// maxRead is how much of a transcript is counted at once. The next reading ends a
	// status line that still runs, so that one must be done before.
	maxRead  = 8 << 20
	maxFinal = 4 << 30
)

// follow calls f for each whole line of a file behind *read, up to limit bytes, and moves *read
// behind them. A file that is not there has no lines.
//
// A file that is shorter than what was read, or where no line ends there, was cut off
// or replaced. Then follow moves *read to its end, and calls replaced.
func follow(path string, read *int64, limit int64, replaced func(), f func(line []byte, at int64)) error {
	if path == "" {
		return nil
	}
	file, err := disk.OpenForeign(path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // it was only read
	size := file.Info().Size
	if size == *read {
		return nil
	}
	if size < *read || !lineEnds(file, *read) {
		*read = size
		replaced()
		return nil
	}
	end := *read + limit
	return lines.EachHead(maxLine, true, io.NewSectionReader(file, *read, size-*read), *read, func(at, next int64, line []byte, whole bool) bool {
		if at >= end || !whole { // a line that is being written
			return false
		}
		if len(line) <= maxLine {
			f(line, at)
		}
		*read = next
		return true
	})
}

// lineEnds reports whether a line ends, and the next begins, at a position.
func lineEnds(file *disk.File, at int64) bool {
	var b [1]byte
	n, _ := file.ReadAt(b[:], max(0, at-1))
	return at == 0 || n == 1 && b[0] == '\n'
}

// lookBack is how much of a transcript is searched before its end. The results of the
// tools may be there behind the answer that asked for them.
const lookBack = 1 << 20

// HasTool reports whether the answer of the model that asked for a tool was counted, as
// far as the end of what was counted tells. id is the tool_use_id, and agent names the
// subagent that asked, empty for the session itself.
func (s *State) HasTool(id, agent string) bool {
	path, read := s.Transcript, s.Read
	if agent != "" {
		name := "agent-" + agent + ".jsonl"
		path, read = filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents", name), 0
		for _, a := range s.agents {
			if a.name == hash(name) {
				read = a.read
			}
		}
	}
	if id == "" || path == "" || read == 0 || strings.ContainsRune(agent, filepath.Separator) {
		return false
	}
	file, err := disk.OpenForeign(path, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close() // it was only read
	buffer := make([]byte, min(read, lookBack))
	n, _ := file.ReadAt(buffer, read-int64(len(buffer)))
	return strings.Contains(string(buffer[:n]), `"`+id+`"`)
}

// Largest is the most that one of the last requests took, in dollars and in tokens. ok is false
// if there was none.
func (s *State) Largest() (most price.Amount, ok bool) {
	for _, r := range s.recent {
		most.Nanos = max(most.Nanos, r.nanos)
		if r.tokens.Sum() > most.Tokens.Sum() {
			most.Tokens = r.tokens
		}
	}
	return most, len(s.recent) > 0
}
