package inbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

func mkfifo(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, unix.Mkfifo(path, 0o600))
}

// step delivers, acknowledges and sets aside, and so uses every state file.
func step(box *inbox.Inbox) error {
	for _, settle := range []func(*inbox.Tx) error{
		func(tx *inbox.Tx) error { return tx.Acknowledge("reply") },
		func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) },
	} {
		tx, err := box.Begin(context.Background())
		if err != nil {
			return err
		}
		if err := deliverAndSettle(tx, settle); err != nil {
			_ = tx.Close() // the first error counts
			return err
		}
		if err := tx.Close(); err != nil {
			return err
		}
	}
	return nil
}

func deliverAndSettle(tx *inbox.Tx, settle func(*inbox.Tx) error) error {
	if tx.InFlight() == nil {
		e, err := tx.Next(inbox.Mark{})
		if err != nil {
			return err
		}
		if _, err := tx.Deliver(e, inbox.Recipient{}); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	if err := settle(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// A state file that is a FIFO or a link to somebody's file is refused with an error that names it.
// The link's target stays as it is, and nothing is lost.
func TestForeignStateFilesAreRefused(t *testing.T) {
	t.Parallel()
	names := []string{".inbox-lock", ".inbox-journal", ".inbox-offset", ".in-flight", ".results.jsonl", ".dead-letter.jsonl"}
	plant := map[string]func(t *testing.T, path, target string){
		"symlink": func(t *testing.T, path, target string) { require.NoError(t, os.Symlink(target, path)) },
		"dangling symlink": func(t *testing.T, path, target string) {
			require.NoError(t, os.Symlink(target+".none", path))
		},
		"FIFO":      func(t *testing.T, path, _ string) { mkfifo(t, path) },
		"directory": func(t *testing.T, path, _ string) { require.NoError(t, os.Mkdir(path, 0o700)) },
	}
	for kind, put := range plant {
		for _, name := range names {
			t.Run(kind+" "+name, func(t *testing.T) {
				box := newBox(t, "one\ntwo\nthree\n")
				target := filepath.Join(t.TempDir(), "precious")
				write(t, target, "0")
				put(t, beside(box, name), target)
				err := step(box)
				require.ErrorContains(t, err, name)
				if kind != "directory" {
					require.ErrorIs(t, err, disk.ErrForeign)
				}
				assert.Equal(t, "0", read(t, target))
				assert.NoFileExists(t, target+".none")

				require.NoError(t, os.Remove(beside(box, name)))
				drain(t, box)
				assert.Len(t, results(t, box), 3)
			})
		}
	}
}

// heartbeat-rs's flag file has no content: only its name counts.
func TestRespondedLinkIsOnlyRemoved(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	target := filepath.Join(t.TempDir(), "precious")
	write(t, target, "0")
	require.NoError(t, os.Symlink(target, beside(box, ".responded")))
	require.NoError(t, step(box))
	assert.Equal(t, "0", read(t, target))
	assert.NoFileExists(t, beside(box, ".responded"))
}

func TestStateFilesAreForTheirOwnerOnly(t *testing.T) {
	box := newBox(t, "one\ntwo\nthree\n")
	require.NoError(t, step(box))
	deliver(t, box)
	files, err := os.ReadDir(filepath.Dir(box.Path()))
	require.NoError(t, err)
	assert.Len(t, files, 8, "the inbox and seven files of state")
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), f.Name())
	}
}

// The inbox itself belongs to the user: it may be a link, and others may read it.
func TestInboxMayBeALink(t *testing.T) {
	real := filepath.Join(t.TempDir(), "real.jsonl")
	write(t, real, "one\n")
	link := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.Symlink(real, link))
	box := open(t, link)
	_, err := box.Append(context.Background(), inbox.Message{Text: "two"}, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, drain(t, box))
	assert.FileExists(t, filepath.Join(filepath.Dir(link), ".inbox-offset"))
}

// A link to a missing inbox must not make Append retry for ever.
func TestAppendThroughDanglingLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "later.jsonl"), link))
	tries := 0
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpCreate && op.Path == link {
			if tries++; tries > 3 {
				return unix.ELOOP
			}
		}
		return nil
	}
	defer func() { disk.TestOnlyObserver = nil }()
	_, err := open(t, link).Append(context.Background(), inbox.Message{Text: "x"}, 0)
	assert.NotErrorIs(t, err, unix.ELOOP, "it goes on trying")
}
