package meter

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/price"
)

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

// Largest is the most tokens that one of the last requests took. ok is false if there was
// none.
func (s *State) Largest() (most price.Tokens, ok bool) {
	for _, r := range s.recent {
		if r.tokens.Sum() > most.Sum() {
			most = r.tokens
		}
	}
	return most, len(s.recent) > 0
}
