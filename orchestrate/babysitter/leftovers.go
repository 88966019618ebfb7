package babysitter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
)

var unfinished = lazily(`^\d+\..*\.json\.tmp-(\d+)-\d+$`)

// sweepJournal removes the temporary files of writers that were killed. The CLI counts them
// when it numbers the next event, and then takes the gap in the numbers for damage.
func (r run) sweepJournal(c *CLI) error {
	entries, err := os.ReadDir(r.journal())
	if err != nil {
		return nil // the CLI will say what is wrong with it
	}
	for _, entry := range entries {
		m := unfinished().FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err != nil || !gone(pid) && otherProgram(pid) == "" && !aged(entry) {
			continue
		}
		c.note("the run %s: removed journal/%s, which a killed writer left", r.dir, entry.Name())
		if err := disk.Remove(filepath.Join(r.journal(), entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// aged reports whether a file is too old to be still written: a write takes milliseconds.
func aged(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && time.Since(info.ModTime()) > time.Minute
}

func (r run) journal() string { return filepath.Join(r.dir, "journal") }

// mustHaveJournal fails if the journal is missing: the CLI would take it for an empty one.
func (r run) mustHaveJournal() error {
	there, err := disk.Exists(r.journal())
	if err == nil && !there {
		return &problem{kind: ErrJournal, sentence: fmt.Sprintf("look at the run %s: it has no folder journal: a repair may have been interrupted, which the next iteration finishes", r.dir)}
	}
	return err
}

// finishRepair finishes a repair that was killed between its last two steps: the journal
// was moved aside, and the mended one is not yet in its place. The CLI would take the run
// for one without events, and request everything again.
func (r run) finishRepair(c *CLI) error {
	if there, err := disk.Exists(r.journal()); there || err != nil {
		return err
	}
	aside, err := filepath.Glob(filepath.Join(escapeGlob(r.dir), "journal.bak.*"))
	if err != nil || len(aside) == 0 {
		return r.noJournal()
	}
	stamp := strings.TrimPrefix(filepath.Ext(aside[len(aside)-1]), ".")
	mended := filepath.Join(r.dir, "journal.repaired."+stamp)
	if there, err := disk.Exists(mended); !there || err != nil {
		return r.noJournal()
	}
	c.note("the run %s: finished the repair of its journal, which was interrupted", r.dir)
	if err := os.Rename(mended, r.journal()); err != nil {
		return fmt.Errorf("finish the repair of the run %s: %w", r.dir, err)
	}
	return nil
}

func (r run) noJournal() error {
	return &problem{kind: ErrJournal, sentence: fmt.Sprintf("work on the run %s: it has no folder journal: restore it from a backup", r.dir)}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
