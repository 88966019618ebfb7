package hosting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

const (
	maxLogLine = 1 << 20                // bytes of a line that are shown
	logPoll    = 200 * time.Millisecond // between two reads of a followed log
)

var logsVerb = cli.Verb{
	Name:  "logs",
	Args:  "ID",
	IDs:   sessionIDs,
	Short: "print the log of a session's host",
	Long: `Print the end of a session's log: what its host did, the tool calls, and what the
client wrote to stderr; with --follow also later lines, until the host is done. With
--json a line is an object: {"line":"..."}.

` + whichID + `

Exit status: 0 printed; 1 not: there is no such session, or more than one, or no
log; 128+n signal n ended it.`,
	Example: "heartbeat-host logs ses-1 --follow",
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		var count int // 0 for all
		var follow bool
		o.add(f)
		cli.AddCount(f, &count, 50, "print the last `N` lines (0: all)")
		cli.AddFollow(f, &follow)
		return o.action(f, func(h *hosted, s cli.Streams) error { return h.logs(o.JSON, count, follow, s) })
	},
}

func (h *hosted) logs(asJSON bool, count int, follow bool, s cli.Streams) (err error) {
	file, err := disk.OpenForeign(h.State.LogPath, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s has no log: %s is not there", h.ID, h.State.LogPath)
	}
	if err != nil {
		return fmt.Errorf("read the log of session %s: %w", h.ID, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	at, err := lastLines(file, count)
	if err != nil {
		return err
	}
	show := func(line []byte) error {
		if asJSON {
			return cli.PrintJSON(s.Out, map[string]string{"line": string(line)})
		}
		_, err := fmt.Fprintln(s.Out, words.Plain(string(line)))
		return err
	}
	if !follow {
		_, err = printLog(file, at, true, show)
		return err
	}
	return untilSignal(func(ctx context.Context) error { return followLog(ctx, h, file, at, show, s) })
}

// lastLines returns the offset of the last count lines of a file; a count of 0 means all.
func lastLines(file *disk.File, count int) (int64, error) {
	info, err := file.Stat()
	if err != nil || count == 0 {
		return 0, err
	}
	if ends, err := lines.Ends(file, info.Size); err != nil {
		return 0, err
	} else if !ends { // an unfinished last line counts
		count--
	}
	return lines.Back(file, info.Size, count)
}

// printLog prints the lines of a log from an offset on and returns where it stopped: before an
// unfinished last line, unless all is set. A log that has become shorter is printed from its start.
func printLog(file *disk.File, at int64, all bool, show func(line []byte) error) (int64, error) {
	if info, err := file.Stat(); err == nil && info.Size < at {
		at = 0
	}
	var failed error
	err := lines.EachHead(maxLogLine, true, io.NewSectionReader(file, at, math.MaxInt64-at), at, func(start, end int64, line []byte, whole bool) bool {
		if !whole && !all {
			return false
		}
		if more := end - start - int64(len(line)); more > 2 { // more than CRLF
			line = fmt.Appendf(nil, "%s... and %d more bytes", line, more)
		}
		failed, at = show(line), end
		return failed == nil
	})
	return at, errors.Join(err, failed)
}

// followLog prints later lines until no process works on the session, or nobody reads them.
func followLog(ctx context.Context, h *hosted, file *disk.File, at int64, show func(line []byte) error, s cli.Streams) (err error) {
	for ; err == nil; err = s.ReaderGone() {
		over := h.reopen() != nil || h.Host == 0
		if at, err = printLog(file, at, over, show); err != nil || over {
			return err
		}
		select {
		case <-time.After(logPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
