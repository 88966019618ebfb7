package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/guild"
)

// Refusal is how a guild refused a letter.
type Refusal struct {
	At     time.Time `json:"at"`
	Status int       `json:"status"` // the HTTP status
	Body   string    `json:"body"`   // at most 500 characters of the answer

	// Which letter it was: one that replaces it is sent again.
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"`
}

const maxMark = 64 << 10

// markPath is where the mark of a letter is. The letter itself stays in place under
// its own name, where the guild of the babysitter drains it without the check that it
// was refused by.
func (b Box) markPath(l Letter) string {
	name := string(l.Kind) + "-" + l.SessionID
	if l.foreign() {
		sum := sha256.Sum256([]byte(l.Path))
		name = "cwd-" + hex.EncodeToString(sum[:16])
	}
	return filepath.Join(b.dir, "refused", name+".mark")
}

func (b Box) mark(l *Letter, f *disk.File, refused *guild.Refused) error {
	path := b.markPath(*l)
	if err := b.makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	info := f.Info()
	l.Refused = &Refusal{
		At: time.Now().UTC(), Status: refused.Status, Body: refused.Body,
		Path: l.Path, Size: info.Size, Mtime: info.Mtime,
	}
	text, err := json.Marshal(l.Refused)
	if err != nil {
		return err
	}
	return disk.Publish(path, text, false)
}

func (b Box) unmark(l Letter) error { return disk.Remove(b.markPath(l)) }

// refusal is the mark of a letter, or nil if it was not refused.
func (b Box) refusal(l *Letter) *Refusal {
	r := readMark(b.markPath(*l))
	if r == nil || r.Path != l.Path || r.Size != l.Size || r.Mtime != l.Since.UnixNano() {
		return nil
	}
	return r
}

func readMark(path string) *Refusal {
	text, err := disk.ReadState(path, maxMark)
	if err != nil {
		return nil // without a mark the letter is sent once more, which does no harm
	}
	var r Refusal
	if json.Unmarshal(text, &r) != nil {
		return nil
	}
	return &r
}

// sweep removes the marks of letters that are gone: the guild of the babysitter took
// them, or a person removed them.
func (b Box) sweep() {
	dir := filepath.Join(b.dir, "refused")
	names, _, err := disk.Names(dir, maxLetters)
	if err != nil {
		return // nothing was ever refused here
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if r := readMark(path); r != nil && strings.HasSuffix(name, ".mark") {
			if there, err := disk.Exists(r.Path); err == nil && !there {
				_ = disk.Remove(path) // a mark that stays does no harm
			}
		}
	}
}
