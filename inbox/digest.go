package inbox

import (
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"heartbeat/internal/journal"
)

// The journal carries a running digest of what was settled: the hash of the bytes
// from DigestStart to the cursor, in a form that more bytes can be added to. Each
// commit adds the lines that it settled. Only when the file looks replaced is the
// whole hashed again.
//
// The digest starts after bytes that it cannot cover: those before a cursor that
// another program set, and those that became a hole.

// digestStep bounds how much one commit adds. It is more than one transaction can
// pass, except when a line is too long to be an entry.
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
		if err == nil {
			next.Digest, err = suspendDigest(h)
		}
		if err == nil {
			next.DigestEnd = next.Cursor
			return
		}
	}
	// The cursor moved back, or the file has just shrunk, or it has a huge hole.
	next.Digest, next.DigestStart, next.DigestEnd = "", next.Cursor, next.Cursor
}

// keepsSettled reports whether the bytes before the cursor are still the ones
// that were settled, as far as the digest covers them. It reads them all.
func (t *Tx) keepsSettled() (bool, error) {
	st := &t.st
	if st.DigestEnd != st.Cursor || st.DigestStart == st.Cursor {
		return true, nil // the anchor is all there is
	}
	want, err := resumeDigest(st.Digest)
	if err != nil {
		return true, nil
	}
	got := sha256.New()
	if err := t.hashInto(got, st.DigestStart, st.Cursor); err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
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

func suspendDigest(h hash.Hash) (string, error) {
	raw, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	return base64.StdEncoding.EncodeToString(raw), err
}

// hashRange is the hash of bytes in the queue file.
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
