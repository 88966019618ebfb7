package inbox

import (
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// anchorSpan is the least number of bytes before the cursor that are remembered, and tailSpan the greatest number of
// waiting bytes.
const (
	anchorSpan = 4 << 10
	tailSpan   = 16 << 10
)

// remember notes in the next record how to recognise the queue file: by its bytes before the cursor (at least
// the whole last line), and by the last waiting bytes, which tell an edit from a file that was filled again.
func (t *Tx) remember(next *journal.Record) {
	if t.reanchor {
		next.AnchorStart, next.AnchorSum = t.sum(max(0, min(t.lastLine, next.Cursor-anchorSpan)), next.Cursor)
	}
	t.extendDigest(next)
	if t.file == nil {
		next.Reached = nil
		return
	}
	now := t.queueMark()
	t.rememberReached(next, now)
	start := max(next.Cursor, now.Size-tailSpan)
	if next.TailSum == "" || next.TailStart != start || (Mark{next.SeenSize, next.SeenMtime}) != now {
		next.TailStart, next.TailSum = t.sum(start, now.Size)
	}
	next.SeenFile, next.SeenPlace, next.SeenYoung = t.file.Identity(), t.file.Place(), disk.Young(now.Mtime)
	next.SeenSize, next.SeenMtime = now.Size, now.Mtime
}

// reach is a length that the queue file had, and when. What lies before that end has waited at least since then.
type reach [2]int64

// maxReached bounds the reaches in a record.
const maxReached = 4

// rememberReached drops the reaches that say nothing about waiting entries, and adds the present one.
func (t *Tx) rememberReached(next *journal.Record, now Mark) {
	last := next.Cursor // the entry in flight may be given back
	var all []reach
	for _, s := range kept[[]reach](next.Reached) {
		if end := s[0]; next.Cursor < end && end <= now.Size {
			all, last = append(all, s), end
		}
	}
	if last < now.Size && len(all) < maxReached {
		all = append(all, reach{now.Size, now.Mtime})
	}
	if next.Reached = nil; len(all) > 0 {
		next.Reached, _ = flat.JSON(all) // numbers always encode
	}
}

// sum returns the start of a range of the queue file, and its hash. Both are zero for an empty range, or if
// the file has just shrunk, which the next transaction notices.
func (t *Tx) sum(start, end int64) (int64, string) {
	if t.file == nil || start >= end {
		return 0, ""
	}
	sum, err := t.hashRange(start, end)
	if err != nil {
		return 0, ""
	}
	return start, sum
}

// rememberOwn hashes the last of the lines that this commit appends to the queue file, since nothing has read
// the file with those lines yet.
func rememberOwn(next *journal.Record) {
	next.OwnStart, next.OwnEnd, next.OwnSum = 0, 0, ""
	var own []byte
	for _, a := range next.Appends {
		if a.Kind == journal.Queue {
			own = append(own, a.Bytes()...)
			next.OwnEnd = a.At + int64(len(a.Bytes()))
		}
	}
	if own = own[max(0, len(own)-tailSpan):]; len(own) > 0 {
		next.OwnStart, next.OwnSum = next.OwnEnd-int64(len(own)), entryID(own)
	}
}

// notice makes the transaction commit the present state of the file at once.
func (t *Tx) notice() { t.noticed, t.dirty = true, true }

// The journal carries a running digest of what was settled: the hash of the bytes from DigestStart to the
// cursor, in a form to which more bytes can be added. Each commit adds the lines that it settled. The whole
// range is hashed again only when the file looks replaced.
//
// The digest starts after bytes that it cannot cover: those before a cursor that another program set, and
// those that became a hole.

// digestStep bounds what one commit adds. It is more than one transaction can pass, except for a line that is
// too long to be an entry.
const digestStep = 2 * MaxLine

// forgetDigest starts the digest anew at the cursor.
func (t *Tx) forgetDigest() {
	t.st.Digest, t.st.DigestStart, t.st.DigestEnd = "", t.st.Cursor, t.st.Cursor
}

// extendDigest adds the bytes between the digest's end and the cursor.
func (t *Tx) extendDigest(next *journal.Record) {
	if next.DigestEnd == next.Cursor {
		return
	}
	if passed := next.Cursor - next.DigestEnd; passed > 0 && passed <= digestStep && t.file != nil {
		h, err := resumeDigest(next.Digest)
		if err == nil {
			err = t.hashInto(h, next.DigestEnd, next.Cursor)
		}
		var raw []byte
		if err == nil {
			raw, err = h.(encoding.BinaryMarshaler).MarshalBinary()
		}
		if err == nil {
			next.Digest, next.DigestEnd = base64.StdEncoding.EncodeToString(raw), next.Cursor
			return
		}
	}
	// The cursor moved back, the file has just shrunk, or it has a huge hole.
	next.Digest, next.DigestStart, next.DigestEnd = "", next.Cursor, next.Cursor
}

// keepsSettled reports whether the bytes before the cursor are still the settled ones, as far as the digest
// covers them. It reads them all.
func (t *Tx) keepsSettled() (bool, error) {
	st := &t.st
	if st.DigestEnd != st.Cursor || st.DigestStart == st.Cursor {
		return true, nil // only the anchor is known
	}
	want, err := resumeDigest(st.Digest)
	if err != nil {
		return true, nil
	}
	got := sha256.New()
	if err := t.hashInto(got, st.DigestStart, st.Cursor); err != nil {
		return false, inReading(err)
	}
	return string(got.Sum(nil)) == string(want.Sum(nil)), nil
}

func resumeDigest(kept string) (hash.Hash, error) {
	h := sha256.New()
	if kept == "" {
		return h, nil
	}
	raw, err := base64.StdEncoding.DecodeString(kept)
	if err == nil {
		err = h.(encoding.BinaryUnmarshaler).UnmarshalBinary(raw)
	}
	return h, err
}

// hashRange returns the hash of a range of the queue file.
func (t *Tx) hashRange(start, end int64) (string, error) {
	h := sha256.New()
	if err := t.hashInto(h, start, end); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t *Tx) hashInto(h hash.Hash, start, end int64) error {
	if t.chunk == nil {
		t.chunk = make([]byte, tailSpan)
	}
	n, err := io.CopyBuffer(h, io.NewSectionReader(t.file, start, end-start), t.chunk)
	if err == nil && n < end-start {
		err = io.EOF
	}
	return err
}
