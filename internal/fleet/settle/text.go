package settle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// keepText writes the text of an outcome down, before anything is decided by it.
func (u *Upstream) keepText(ctx context.Context, c Claim, o Outcome) (Answer, error) {
	a := Answer{
		ID: c.ID, Agent: c.Agent, EntryID: c.EntryID, Again: c.Again, Outcome: WasAnswered,
		Reply: o.Reply, Bytes: int64(len(o.Reply)), Attempts: o.Attempts, SessionID: o.SessionID, At: o.At, Fields: o.Fields,
	}
	value, err := json.Marshal(a)
	if err != nil {
		return a, fmt.Errorf("encode its answer: %w", err)
	}
	if int64(len(value)) > u.most() {
		if a.Object, err = u.keepObject(ctx, names.Answer(c.ID, c.Agent), []byte(o.Reply)); err != nil {
			return a, err
		}
		a.Reply = ""
		if value, err = json.Marshal(a); err != nil {
			return a, fmt.Errorf("encode its answer: %w", err)
		}
	}
	return a, u.createText(ctx, c, value)
}

// createText does not write over the text of what was decided already.
func (u *Upstream) createText(ctx context.Context, c Claim, value []byte) error {
	kv, err := u.results(ctx)
	if err != nil {
		return err
	}
	key := names.Answer(c.ID, c.Agent)
	_, err = u.create(ctx, kv, key, value)
	if errors.Is(err, jetstream.ErrKeyExists) {
		err = u.replaceText(ctx, kv, c, value)
	}
	if err != nil {
		return fmt.Errorf("write its answer to the bucket %s: %w", names.Bucket(u.stream), err)
	}
	return u.done(stepText)
}

// replaceText writes over a text that nothing was decided by: it is of a life that was
// killed before it got there. An agent may write its texts, and need not read them.
func (u *Upstream) replaceText(ctx context.Context, kv jetstream.KeyValue, c Claim, value []byte) error {
	r, _, err := u.decision(ctx, c.ID)
	switch {
	case err == nil && r.holds(c.Again):
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrKeyNotFound):
		return err
	}
	return u.put(ctx, kv, names.Answer(c.ID, c.Agent), json.RawMessage(value))
}

// Reply returns the text of an answer, from the object store if it is there.
func (u *Upstream) Reply(ctx context.Context, a Answer) (string, error) {
	if a.Object == "" {
		return a.Reply, nil
	}
	text, err := u.object(ctx, a.Object)
	if err != nil {
		return "", fmt.Errorf("read the reply to message %s from the object store %s: %w", Claim{ID: a.ID}.name(), names.Replies(u.stream), err)
	}
	return string(text), nil
}

func (u *Upstream) object(ctx context.Context, name string) ([]byte, error) {
	store, err := u.js.ObjectStore(ctx, names.Replies(u.stream))
	if err != nil {
		return nil, err
	}
	return store.GetBytes(ctx, name)
}

// keepObject puts bytes into the object store, under a name that follows from them, so that
// a second try finds them there.
func (u *Upstream) keepObject(ctx context.Context, prefix string, text []byte) (string, error) {
	sum := sha256.Sum256(text)
	name := prefix + "." + hex.EncodeToString(sum[:8])
	if err := u.putObject(ctx, name, text); err != nil {
		return "", fmt.Errorf("put its %d bytes into the object store %s: %w", len(text), names.Replies(u.stream), err)
	}
	return name, u.done(stepObject)
}

func (u *Upstream) putObject(ctx context.Context, name string, text []byte) error {
	ctx, cancel := u.within(ctx)
	defer cancel()
	store, err := u.js.ObjectStore(ctx, names.Replies(u.stream))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("it is not there: `heartbeat-nats setup --stream %s` makes it: %w", u.stream, err)
	}
	if err != nil {
		return err
	}
	info, err := store.GetInfo(ctx, name)
	if err == nil && info.Size == uint64(len(text)) {
		return nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: u.chunk()}}
	_, err = store.Put(ctx, meta, bytes.NewReader(text))
	return err
}

// most is how long a value may be: half of what the server takes leaves room for headers.
func (u *Upstream) most() int64 { return u.js.Conn().MaxPayload() / 2 }

const maxChunk = 128 << 10 // the client's own default

func (u *Upstream) chunk() uint32 { return uint32(max(1, min(maxChunk, u.most()))) }

func (u *Upstream) put(ctx context.Context, kv jetstream.KeyValue, key string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	_, err = kv.Put(ctx, key, value)
	return u.unanswered(kv.Bucket(), err)
}

// remove leaves a mark in the place of a value. A purge would need rollups, with which one
// message could empty a bucket.
func (u *Upstream) remove(ctx context.Context, kv jetstream.KeyValue, key string) error {
	ctx, cancel := u.within(ctx)
	defer cancel()
	return u.unanswered(kv.Bucket(), kv.Delete(ctx, key))
}

// cut is at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
