package stuck

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// stamp is a time as it stands in the files.
var stamp = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// shifts moves every time that the inbox and the session have kept: back, as if nothing had
// happened for so long, or forth, as if the clock had been set back. The length of a time
// stays, and with it that of a record.
func (r *rig) shifts(by time.Duration) {
	r.t.Helper()
	shift := func(text string) string {
		return stamp.ReplaceAllStringFunc(text, func(s string) string {
			at, err := time.Parse(time.RFC3339Nano, s)
			require.NoError(r.t, err)
			return at.Add(by).Format(time.RFC3339Nano)
		})
	}
	files, err := filepath.Glob(r.path("q/.*"))
	require.NoError(r.t, err)
	for _, name := range append(files, r.inbox()) {
		raw, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // whoever wrote it has put it in its place
			continue
		}
		require.NoError(r.t, err)
		text := string(raw)
		if filepath.Base(name) != ".inbox-journal" {
			text = shift(text)
		} else {
			text = records(text, shift)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // the file stays the same one
		require.NoError(r.t, err)
		_, err = f.WriteString(text)
		require.NoError(r.t, errors.Join(err, f.Close()))
	}
	transcripts, err := filepath.Glob(r.path("transcripts/*"))
	require.NoError(r.t, err)
	for _, name := range append(transcripts, append(files, r.inbox())...) {
		info, err := os.Stat(name)
		if err == nil {
			err = os.Chtimes(name, info.ModTime().Add(by), info.ModTime().Add(by))
		}
		require.NoError(r.t, err)
	}
}

// records changes the JSON of each record, and its sum.
func records(text string, change func(string) string) string {
	var changed strings.Builder
	for line := range strings.Lines(text) {
		sum, object, is := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if is && len(sum) == 16 && strings.HasPrefix(object, "{") {
			object = change(object)
			hash := sha256.Sum256([]byte(object))
			line = hex.EncodeToString(hash[:8]) + " " + object + "\n"
		}
		changed.WriteString(line)
	}
	return changed.String()
}
