package look

import (
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate"
)

// sign is what the names of files show without reading them.
type sign []mark

type mark struct {
	dev, ino           uint64
	size, mtime, ctime int64
	mode               uint32
}

func markOf(path string) mark {
	i, err := disk.StatName(path)
	if err != nil {
		return mark{}
	}
	return mark{i.Dev, i.Ino, i.Size, i.Mtime, i.Ctime, i.Mode}
}

// there reports whether the file was there.
func (m mark) there() bool { return m != mark{} }

func (s sign) equal(other sign) bool {
	if len(s) != len(other) {
		return false
	}
	for i := range s {
		if s[i] != other[i] {
			return false
		}
	}
	return true
}

// stateFiles are those beside an inbox that the overview is made of.
var stateFiles = []string{
	".inbox-journal", ".inbox-offset", ".in-flight", ".responded", ".scheduled.jsonl", ".launch-lock",
}

func stateSign(box *inbox.Inbox) sign {
	s := sign{markOf(box.Path())}
	for _, name := range stateFiles {
		s = append(s, markOf(filepath.Join(box.Dir(), name)))
	}
	return s
}

// costSign covers what was charged, and the meters, which are published beside the
// inbox.
func costSign(box *inbox.Inbox) sign {
	return sign{markOf(filepath.Join(box.Dir(), costsName)), markOf(filepath.Join(box.Dir(), ".inbox-journal")), markOf(box.Dir())}
}

// costsName is the file of what was charged.
const costsName = ".costs.jsonl"

// runSign covers the runs that an inbox drives. There are mostly none.
func runSign(box *inbox.Inbox, runs []orchestrate.DrivenRun) sign {
	s := sign{markOf(box.Dir())}
	for _, r := range runs {
		s = append(s, markOf(filepath.Join(r.Dir, "journal")))
	}
	return s
}

// hasRuns reports whether there is the ledger of any run.
func hasRuns(dir string) bool {
	names, _, err := disk.Names(dir, 10_000)
	if err != nil {
		return false
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".run-") {
			return true
		}
	}
	return false
}
