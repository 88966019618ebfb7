package babysitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
)

// Reopen takes an effect's result away, so that the effect waits for another one. The CLI
// has no command for that, but in a journal without the event of the result the effect
// still waits, and a repair accepts such a journal. The event is kept in the run's folder.
func (c *CLI) Reopen(ctx context.Context, runDir, effectID string) error {
	r, err := runIn(runDir)
	if err != nil {
		return err
	}
	if err := checkEffectID(effectID); err != nil {
		return err
	}
	moved := false
	return c.writing(ctx, r, func() error { // called again while others hold the CLI's lock
		if !moved {
			if err := r.setResultAside(effectID); err != nil {
				return fmt.Errorf("have effect %s of the run %s wait again: %w", effectID, r.dir, err)
			}
			moved = true
		}
		_, err := c.repair(ctx, r)
		return err
	})
}

// setResultAside moves the event of an effect's result out of the journal.
func (r run) setResultAside(effectID string) error {
	name, err := r.resolution(effectID)
	if err != nil {
		return err
	}
	return os.Rename(filepath.Join(r.journal(), name), filepath.Join(r.dir, "reopened."+name))
}

// resolution is the name of the event by which an effect got its result.
func (r run) resolution(effectID string) (string, error) {
	names, err := os.ReadDir(r.journal())
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		content, err := disk.ReadFile(filepath.Join(r.journal(), n.Name()), maxMetadata)
		if err != nil {
			return "", err
		}
		var e struct {
			Type text
			Data struct{ EffectID text }
		}
		if json.Unmarshal(content, &e) == nil && e.Type == "EFFECT_RESOLVED" && string(e.Data.EffectID) == effectID {
			return n.Name(), nil
		}
	}
	return "", errors.Join(err, errors.New("its journal has no result for it"))
}
