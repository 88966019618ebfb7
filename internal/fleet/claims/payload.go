package claims

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/disk"
)

const (
	// payloadPrefix begins the name of a file beside the ledger that has the payload of one
	// claim.
	payloadPrefix = ".nats-payload-"
	// mostInline is the longest payload that the ledger itself has: it is written again with
	// each change of any claim.
	mostInline = 4 << 10
	// maxPayload is what a server takes at most.
	maxPayload = 64 << 20
	// maxNames bounds how many names are looked through for files that were left.
	maxNames = 100_000
)

// moveOut writes a long payload to a file of its own, which is durable when moveOut returns:
// the claim that names it is written after that.
func (l *Ledger) moveOut(c *Claim) error {
	if len(c.Payload) <= mostInline {
		return nil
	}
	c.PayloadFile, c.PayloadSum = payloadPrefix+sum([]byte(c.Entry)), sum(c.Payload)
	l.mu.Lock()
	l.gone = slices.DeleteFunc(l.gone, func(name string) bool { return name == c.PayloadFile })
	l.mu.Unlock()
	if err := disk.Publish(l.beside(c.PayloadFile), c.Payload, true); err != nil {
		return fmt.Errorf("keep its payload: %w", err)
	}
	c.Payload = nil
	return nil
}

// ErrNoPayload says that a payload was kept, and somebody removed or changed its file.
var ErrNoPayload = errors.New("it is not there any more")

// Payload is the payload of a claim as the message had it, nil if it was not kept. The error
// matches [ErrNoPayload] if trying again does not help.
func (l *Ledger) Payload(c Claim) ([]byte, error) {
	if c.PayloadFile == "" {
		return c.Payload, nil
	}
	if !isPayload(c.PayloadFile) {
		return nil, fmt.Errorf("read the payload of %q: %w: the ledger names the file %q, which is none of a payload", c.ID, ErrNoPayload, c.PayloadFile)
	}
	path := l.beside(c.PayloadFile)
	data, err := disk.ReadState(path, maxPayload)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, disk.ErrForeign):
		return nil, fmt.Errorf("read the payload of %q: %w: %w", c.ID, ErrNoPayload, err)
	case err != nil:
		return nil, fmt.Errorf("read the payload of %q: %w", c.ID, err)
	case sum(data) != c.PayloadSum:
		return nil, fmt.Errorf("read the payload of %q: %w: %s was changed since it was written", c.ID, ErrNoPayload, path)
	}
	return data, nil
}

// remove removes the payload of a claim that is no longer in the ledger. One that stays is
// removed when the ledger is opened.
func (l *Ledger) remove(name string) {
	if isPayload(name) {
		_ = disk.Remove(l.beside(name))
	}
}

// sweep removes payloads that no claim names.
func (l *Ledger) sweep() error {
	all, _, err := disk.Names(filepath.Dir(l.path), maxNames)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, c := range l.state.Claims {
		named[c.PayloadFile] = true
	}
	for _, name := range all {
		if isPayload(strings.TrimSuffix(name, ".tmp")) && !named[name] {
			if err := disk.Remove(l.beside(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Ledger) beside(name string) string { return filepath.Join(filepath.Dir(l.path), name) }

func isPayload(name string) bool {
	digits, found := strings.CutPrefix(name, payloadPrefix)
	return found && len(digits) == sumDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

const sumDigits = 32

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])[:sumDigits]
}
