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

// Reopen has an effect that has its result wait for another one. The CLI has no
// command for it but that a repair takes a journal without the event for one where the
// effect still waits. The event is kept in the run's folder.
func (c *CLI) Reopen(ctx context.Context, runDir, effectID string) error {
	r, err := runIn(runDir)
	if err != nil {
		return err
	}
	if err := checkEffectID(effectID); err != nil {
		return err
	}
	release, err := LockRun(ctx, runDir, c.wait())
	if err != nil {
		return err
	}
	defer func() { _ = release() }() // the kernel does, too
	name, err := r.resolution(effectID)
	if err != nil {
		return fmt.Errorf("have effect %s of the run %s wait again: %w", effectID, r.dir, err)
	}
	if err := os.Rename(filepath.Join(r.journal(), name), filepath.Join(r.dir, "reopened."+name)); err != nil {
		return fmt.Errorf("have effect %s of the run %s wait again: %w", effectID, r.dir, err)
	}
	_, err = c.Repair(ctx, runDir)
	return err
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
