package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Mark is the state of the queue file at one moment.
type Mark struct {
	Size  int64
	Mtime int64 // nanoseconds since 1970
}

// openFile opens the queue file as it is now.
func (t *Tx) openFile() (err error) {
	if err := t.file.Close(); err != nil {
		return err
	}
	t.file, err = journal.OpenQueue(t.box.path)
	return inReading(err)
}

func (t *Tx) queueSize() int64 {
	if t.file == nil {
		return 0
	}
	return t.file.Info().Size
}

func (t *Tx) queueMark() Mark {
	if t.file == nil {
		return Mark{}
	}
	return markOf(t.file)
}

func markOf(queue *disk.File) Mark { return Mark{Size: queue.Info().Size, Mtime: queue.Info().Mtime} }

// inFlightEnd returns where the entry in flight ends in the queue file, 0 if it is not in that file.
func (t *Tx) inFlightEnd() int64 { return endOf(t.inFlight) }

// unsettled returns the entry in flight and the one to be redelivered, as far as they exist.
func (t *Tx) unsettled() []*Delivery {
	return slices.DeleteFunc([]*Delivery{t.inFlight, t.redeliver}, func(d *Delivery) bool { return d == nil })
}

// settledEnd returns how far the queue file was delivered or settled.
func (t *Tx) settledEnd() int64 { return max(t.st.Cursor, endOf(t.inFlight), endOf(t.redeliver)) }

func endOf(d *Delivery) int64 {
	if d == nil || d.Detached {
		return 0
	}
	return d.EndOffset
}

func (t *Tx) tornTail() (bool, error) {
	if t.file == nil {
		return false, nil
	}
	whole, err := lines.Ends(t.file, t.queueSize())
	return err == nil && !whole, inReading(err)
}

// inReading adds to an error that the inbox was being read.
func inReading(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read inbox: %w", err)
}

// beingWritten reports whether the queue file ends in a line that has no newline, is not blank, and was not
// delivered yet.
func (t *Tx) beingWritten() (bool, error) {
	torn, err := t.tornTail()
	if err != nil || !torn {
		return false, err
	}
	settled := max(t.st.Cursor, t.inFlightEnd())
	if settled >= t.queueSize() {
		return false, nil
	}
	// A longer line is not blank, unless it is the zeros of a file that somebody lengthened.
	from, err := t.file.SkipZeros(max(settled, t.queueSize()-MaxLine-2), t.queueSize())
	if err != nil || from == t.queueSize() {
		return false, err
	}
	tail := io.NewSectionReader(t.file, from, t.queueSize()-from)
	start, err := lines.Start(tail, tail.Size())
	if err != nil {
		return false, inReading(err)
	}
	l, err := t.lineAt(from+start, MaxLine)
	return err == nil && !l.blank(), ignoreEOF(err)
}

// lineAt reads the line that starts at off, and keeps at most most bytes of it. It skips zeros at off: a hole of a
// compaction into which another program set the cursor back, a copy of such a hole, or what a power loss left.
func (t *Tx) lineAt(off int64, most int) (line, error) {
	off, err := t.file.SkipZeros(off, t.queueSize())
	if err != nil {
		return line{}, inReading(err)
	}
	return readLine(t.file, off, t.queueSize(), most)
}

// line is one line of a file, with its bytes unless it is too long.
type line struct {
	start, end int64 // end is behind the newline, or the end of the file
	raw        []byte
	terminated bool
	tooLong    bool
	id         string // set if tooLong
}

// readLine reads the line that starts at off, in a file of the given size. It keeps at most maxLen bytes. At
// the end of the file it returns io.EOF.
func readLine(f io.ReaderAt, off, size int64, maxLen int) (l line, err error) {
	if off >= size {
		return l, io.EOF
	}
	short := make([]byte, min(4<<10, size-off)) // long enough for nearly every line
	n, err := f.ReadAt(short, off)
	if end := bytes.IndexByte(short[:n], '\n'); end >= 0 && end <= maxLen {
		return line{start: off, end: off + int64(end) + 1, raw: bytes.TrimSuffix(short[:end], []byte("\r")), terminated: true}, nil
	}
	if err == nil || err == io.EOF {
		err = lines.EachHead(maxLen+1, true, io.NewSectionReader(f, off, size-off), off, func(start, end int64, raw []byte, whole bool) bool {
			l = line{start: start, end: end, terminated: whole, tooLong: len(raw) > maxLen}
			if !l.tooLong {
				l.raw = bytes.Clone(raw)
			}
			return false
		})
	}
	if err == nil && l.end == 0 {
		return line{}, io.EOF
	}
	if err == nil && l.tooLong {
		l.id, err = l.sum(f)
	}
	return l, err
}

// sum computes the line's entry id from its bytes in the file.
func (l line) sum(f io.ReaderAt) (string, error) {
	end, err := contentEnd(f, l)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(f, l.start, end-l.start))
	return hex.EncodeToString(h.Sum(nil)), err
}

func (l line) blank() bool { return !l.tooLong && blank(l.raw) }

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// stillPoll is the time between two checks of a file that should not change.
const stillPoll = 20 * time.Millisecond

// Only tests set them.
var (
	restBetweenPolls = func() { time.Sleep(stillPoll) }
	longStill        = 3 * time.Second // some file systems have coarse times
)

// AwaitStill returns once the queue file has not changed for settle, or earlier if the last line gets its newline. With
// the mark, [Tx.Next] accepts a last line without one. It does not hold the lock, and uses only the monotonic clock.
func (b *Inbox) AwaitStill(ctx context.Context, settle time.Duration) (Mark, error) {
	mark, _, err := b.markNow()
	since := time.Now()
	for err == nil {
		rest := settle - time.Since(since)
		if rest <= 0 {
			return mark, nil
		}
		select {
		case <-ctx.Done():
			return Mark{}, context.Cause(ctx)
		case <-time.After(min(rest, stillPoll)):
		}
		var now Mark
		var whole bool
		now, whole, err = b.markNow()
		switch {
		case err == nil && whole:
			return now, nil
		case now != mark:
			mark, since = now, time.Now()
		}
	}
	return Mark{}, fmt.Errorf("wait for the inbox to stand still: %w", err)
}

// markNow returns the state of the queue file, and whether its last line has its newline. If there is no file, there is
// nothing to wait for.
func (b *Inbox) markNow() (mark Mark, whole bool, err error) {
	f, err := journal.OpenQueue(b.path)
	if f == nil || err != nil {
		return Mark{}, err == nil, err
	}
	whole, err = lines.Ends(f, f.Info().Size)
	return markOf(f), whole, errors.Join(err, f.Close())
}
