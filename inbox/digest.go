package inbox

import (
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// The journal carries a running digest of what was settled: the hash of the
// bytes from DigestStart up to the cursor, kept so that it can go on. A
// transaction adds the lines that it settled; the whole is only computed from
// the file where that looks replaced.
//
// The digest starts behind the bytes that it cannot tell of: those before a
// cursor that somebody set, and those that became a hole.

// digestStep is how much one commit adds at the most: more than the lines are that
// one transaction can pass, unless one of them is too long for an entry.
const digestStep = 2 * MaxLine

// forgetDigest has the digest start at the cursor.
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
			err = hashInto(h, t.file, next.DigestEnd, next.Cursor)
		}
		if err == nil {
			next.Digest, err = suspendDigest(h)
		}
		if err == nil {
			next.DigestEnd = next.Cursor
			return
		}
	}
	// The cursor went back, or the file shrank just now, or had a huge hole.
	next.Digest, next.DigestStart, next.DigestEnd = "", next.Cursor, next.Cursor
}

// keepsSettled reports whether the queue file has, before the cursor, what was
// settled there, as far as that is known. It reads all of it.
func (t *Tx) keepsSettled() (bool, error) {
	st := &t.st
	if st.DigestEnd != st.Cursor || st.DigestStart == st.Cursor {
		return true, nil // only the anchor tells
	}
	want, err := resumeDigest(st.Digest)
	if err != nil {
		return true, nil
	}
	got := sha256.New()
	if err := hashInto(got, t.file, st.DigestStart, st.Cursor); err != nil {
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

func hashRange(f *disk.File, start, end int64) (string, error) {
	h := sha256.New()
	if err := hashInto(h, f, start, end); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashInto(h hash.Hash, f *disk.File, start, end int64) error {
	chunk := make([]byte, min(end-start, readChunk))
	for off := start; off < end; off += int64(len(chunk)) {
		part := chunk[:min(int64(len(chunk)), end-off)]
		if _, err := f.ReadAt(part, off); err != nil {
			return err
		}
		h.Write(part)
	}
	return nil
}
