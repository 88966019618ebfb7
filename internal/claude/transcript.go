package claude

import (
	"os"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// Delivery is a text that a Stop hook handed over. Its Reply is a [ReplySum].
type Delivery handed.Delivery

// TranscriptSize returns the size of a transcript in bytes, or 0 if it cannot be read.
func TranscriptSize(path string) int64 {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

func (d Delivery) each(f func(l *flat.Members, at int64)) error {
	return handed.Delivery(d).Each(func(line []byte, at int64) { f(flat.Begun(line), at) })
}

// HasReply reports whether a transcript has a reply of the assistant between two offsets. It reads only the last 256 KiB
// before to.
func HasReply(path string, from, to int64, reply string) (has bool) {
	sum := ReplySum(reply)
	err := handed.Back(path, from, to, func(line []byte) {
		l := flat.Begun(line)
		has = has || isAnswer(l) && isReply(l, sum)
	})
	return err == nil && has
}

// IsToolRunning reports whether the model asked for a tool that has no result yet. It reads only the last 256 KiB before
// size.
func IsToolRunning(path string, size int64) bool {
	asked := map[string]bool{}
	err := handed.Back(path, 0, size, func(line []byte) {
		l := flat.Begun(line)
		if isPrompt(l) {
			clear(asked) // what ran before ended with its turn
		}
		for _, item := range l.Value("message").Get("content").Items() {
			switch item.Get("type").Text() {
			case "tool_use":
				asked[item.Get("id").Text()] = true
			case "tool_result":
				delete(asked, item.Get("tool_use_id").Text())
			}
		}
	})
	return err == nil && len(asked) > 0
}
