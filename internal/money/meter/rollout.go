package meter

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
)

// requestKind is what a rollout shows of the requests that follow.
type requestKind struct {
	model string
	fast  bool
}

// note reads a line: that of a turn has the model, and that of the thread's settings the tier.
func (a *requestKind) note(l *flat.Members) {
	switch payload := l.Value("payload"); {
	case l.String("type") == "turn_context":
		a.model = cmp.Or(clip(payload.Get("model").Text()), a.model)
	case payload.Get("type").Text() == "thread_settings_applied":
		tier := payload.Get("thread_settings").Get("service_tier").Text()
		a.fast = tier == "priority" || tier == "fast"
	}
}

// rollout counts a line of a Codex transcript, which has a usage line for each request.
func (c *counter) rollout(l *flat.Members, at int64) {
	c.kind.note(l)
	c.Model = cmp.Or(c.kind.model, c.Model)
	switch payload := l.Value("payload"); l.String("type") {
	case "token_usage_record":
		c.usage(l, c.kind, c.partOfLine(at))
	case "event_msg":
		if item := itemOf(payload); item == "UserMessage" || item == "HookPrompt" {
			c.begin(at, timeOf(l))
		}
	}
}

// itemOf returns the type of a completed item, or "" for any other event.
func itemOf(payload flat.Value) string {
	if payload.Get("type").Text() != "item_completed" {
		return ""
	}
	return payload.Get("item").Get("type").Text()
}

func (c *counter) usage(l *flat.Members, by requestKind, part int) {
	payload := l.Value("payload")
	id, usage := payload.Get("response_id").Text(), payload.Get("usage")
	if id == "" {
		return
	}
	t := price.Tokens{
		Output: number(usage, "output_tokens"), CacheRead: number(usage, "cached_input_tokens"), CacheWrite: number(usage, "cache_write_input_tokens"),
	}
	t.Input = max(0, number(usage, "input_tokens")-t.CacheRead-t.CacheWrite) // that includes what was cached
	c.addRequest(id, by.model, price.Usage{Tokens: t, Fast: by.fast}, timeOf(l), part)
}

const maxRollouts = 20_000 // limits the names read of a day's folder, which has all sessions of a person

// meet notes the subagents that a line of a rollout names, and whether another one, which no line names, reviews what the
// session asks for.
func (c *counter) meet(l *flat.Members) {
	payload := l.Value("payload")
	by := payload.Get("approvals_reviewer").Text()
	c.reviewed = c.reviewed || by != "" && by != "user"
	if itemOf(payload) != "CollabAgentToolCall" {
		return
	}
	for _, id := range payload.Get("item").Get("receiver_thread_ids").Items() {
		if name := id.Text(); name != "" && len(c.met) < maxAgents && !slices.Contains(c.met, name) {
			c.met = append(c.met, name)
		}
	}
}

// before reads from the rollout's start which subagents the session met, and the kind of request at the range's beginning:
// a chain of entries is one turn, which has that once.
func (c *counter) before() {
	_, _ = c.follow(c.Transcript, 0, false, func(l *flat.Members, at int64) { // the next count reads again what cannot be read now
		if c.meet(l); at < c.From {
			c.kind.note(l)
		}
	})
	c.Model = c.kind.model
}

// rollouts counts requests of subagents that the session met, of those they met, and of reviewers. Each has its own
// rollout.
func (c *counter) rollouts() {
	if len(c.met) == 0 && !c.reviewed {
		return
	}
	paths, own := map[string]string{}, threadOf(c.Transcript)
	for _, dir := range daysOf(filepath.Dir(c.Transcript), time.Now()) {
		names, _, err := disk.Names(dir, maxRollouts)
		if err != nil {
			continue // nothing began on that day
		}
		for _, name := range names {
			thread, path := threadOf(name), filepath.Join(dir, name)
			if paths[thread] = path; c.reviewed && thread > own && len(c.met) < maxAgents && !slices.Contains(c.met, thread) && worksFor(own, path) {
				c.met = append(c.met, thread)
			}
		}
	}
	for i := 0; i < len(c.met); i++ { // it grows: they meet others
		if path := paths[c.met[i]]; path != "" {
			by := c.kind // until its own line
			_, _ = c.follow(path, 0, false, func(l *flat.Members, _ int64) {
				c.meet(l)
				if by.note(l); l.String("type") == "token_usage_record" {
					c.usage(l, by, c.partAt(timeOf(l)))
				}
			})
		}
	}
}

// worksFor reports whether a rollout is that of a session's subagent, which the beginning of its first line shows.
func worksFor(session, path string) bool {
	file, err := disk.OpenForeign(path, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close() // it was only read
	head := make([]byte, 1<<10)
	n, _ := file.ReadAt(head, 0) // it may be shorter
	return bytes.Contains(head[:n], []byte(`"session_id":"`+session+`"`))
}

// daysOf returns dir and, if it is a day's folder of rollouts (YEAR/MONTH/DAY, in local time), those of today and
// yesterday, which have the subagents that began since.
func daysOf(dir string, now time.Time) []string {
	dirs := []string{dir}
	root := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	if _, err := time.Parse("2006/01/02", strings.TrimPrefix(filepath.ToSlash(dir), filepath.ToSlash(root)+"/")); err != nil {
		return dirs
	}
	for _, day := range []time.Time{now.AddDate(0, 0, -1), now} {
		if other := filepath.Join(root, filepath.FromSlash(day.Format("2006/01/02"))); other != dir {
			dirs = append(dirs, other)
		}
	}
	return dirs
}

const uuid = 36 // the length of a UUID in text

// threadOf returns the id of a rollout's session or subagent, the UUID in rollout-TIME-UUID.jsonl, else "".
func threadOf(file string) string {
	name, isRollout := strings.CutPrefix(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "rollout-")
	if !isRollout || len(name) <= uuid || name[len(name)-uuid-1] != '-' {
		return ""
	}
	return name[len(name)-uuid:]
}
