package guild

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	testguild "heartbeat/internal/testing/guild"
)

// A folder that others made, or can write to, is not used, and nothing in it is touched.
func TestAFolderThatIsNotSafe(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"a link":            {func(t *testing.T, dir string) { require.NoError(t, os.Symlink(t.TempDir(), dir)) }, "is a symbolic link, which is never followed for unsent reports"},
		"a link to nowhere": {func(t *testing.T, dir string) { require.NoError(t, os.Symlink("nowhere", dir)) }, "is a symbolic link"},
		"for everybody": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o777))
		}, `\(mode 0777\): take that right away \(chmod o-w /`},
		"a link inside": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "running")))
		}, "running is a symbolic link"},
		"another user's": {func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chown(dir, 4711, 4711))
		}, "belongs to user 4711, and this is user 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g, url := emptyGuild(t, testguild.Options{})
			b := newBox(t)
			c.make(t, b.dir)
			require.ErrorIs(t, b.Check(), disk.ErrForeign)
			assert.Regexp(t, c.want, b.Check())
			b.record("ses-1", nil)
			require.ErrorIs(t, b.Publish(t.Context(), "ses-1"), disk.ErrForeign)
			assert.NoFileExists(t, b.Path("ses-1"))
			_, err := Drain(t.Context(), DrainOptions{DB: b.guild, GuildURL: at(url)})
			require.ErrorIs(t, err, disk.ErrForeign)
			s, _ := g.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied, "it comes from the database")
		})
	}
}

// One that a guild made for its group stays in use.
func TestAFolderOfAGroup(t *testing.T) {
	b := newBox(t)
	require.NoError(t, os.Mkdir(b.dir, 0o700))
	require.NoError(t, os.Chmod(b.dir, 0o775))
	b.record("ses-1", nil)
	require.NoError(t, b.Publish(t.Context(), "ses-1"))
	assert.FileExists(t, b.Path("ses-1"))
}
