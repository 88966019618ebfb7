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
)

// stamp is a time as it stands in the files.
var stamp = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// Shift moves every time that the inbox and the session with these transcripts have kept: back,
// as if nothing had happened for so long, or forth, as if the clock had been set back. The
// length of a time stays, and with it that of a record.
func Shift(by time.Duration, inbox string, transcripts ...string) error {
	shift := func(text string) string {
		return stamp.ReplaceAllStringFunc(text, func(s string) string {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				return s
			}
			return at.Add(by).Format(time.RFC3339Nano)
		})
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(inbox), ".*"))
	if err != nil {
		return err
	}
	files = append(files, inbox)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // whoever wrote it has put it in its place
			continue
		}
		text := string(raw)
		if filepath.Base(name) != ".inbox-journal" {
			text = shift(text)
		} else {
			text = records(text, shift)
		}
		if err == nil {
			err = overwrite(name, text)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range append(transcripts, files...) {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.Chtimes(name, info.ModTime().Add(by), info.ModTime().Add(by))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overwrite leaves the file the same one.
func overwrite(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
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
