package layout

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// side is a stream beside that of the messages: that of a bucket, of a store, or of dead
// letters.
type side struct {
	kind, name, is string
	stream         string        // the name of its stream
	keep           time.Duration // 0: for ever
	asked          string        // the flag that says how long, or nothing
	create         func(context.Context) error
}

func (p *Plan) results(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals) error {
	name := names.Bucket(w.Stream)
	return p.side(ctx, js, w, no, &side{
		kind: "bucket", name: name, is: "results, kept " + lasting(w.KeepResults), stream: "KV_" + name, keep: w.KeepResults, asked: "keep-results",
		create: func(ctx context.Context) error {
			return createBucket(ctx, js, jetstream.KeyValueConfig{
				Bucket: name, Description: "who was first to settle a message of " + w.Stream,
				TTL: w.KeepResults, Storage: jetstream.FileStorage, Replicas: w.Replicas,
			})
		},
	})
}

func (p *Plan) agents(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals) error {
	name := names.Agents(w.Stream)
	return p.side(ctx, js, w, no, &side{
		kind: "bucket", name: name, is: "what agents say of themselves", stream: "KV_" + name, keep: agentsTTL,
		create: func(ctx context.Context) error {
			return createBucket(ctx, js, jetstream.KeyValueConfig{
				Bucket: name, Description: "the agents of " + w.Stream,
				TTL: agentsTTL, Storage: jetstream.FileStorage, Replicas: w.Replicas,
			})
		},
	})
}

func (p *Plan) dead(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals) error {
	name := names.Dead(w.Stream)
	return p.side(ctx, js, w, no, &side{
		kind: "stream", name: name, is: "dead letters, kept " + lasting(w.KeepDead), stream: name, keep: w.KeepDead, asked: "keep-dead",
		create: func(ctx context.Context) error {
			_, err := js.CreateStream(ctx, jetstream.StreamConfig{
				Name: name, Description: "messages of " + w.Stream + " that nobody will answer", Subjects: []string{names.DeadSubjects(w.Stream)},
				Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
				MaxAge: w.KeepDead, Duplicates: w.Duplicates, Replicas: w.Replicas, AllowDirect: true,
			})
			return err
		},
	})
}

func (p *Plan) replies(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals) error {
	name := names.Replies(w.Stream)
	return p.side(ctx, js, w, no, &side{
		kind: "store", name: name, is: "long replies, kept " + lasting(w.KeepResults), stream: "OBJ_" + name, keep: w.KeepResults, asked: "keep-results",
		create: func(ctx context.Context) error {
			_, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
				Bucket: name, Description: "replies of " + w.Stream + " that are too long for a message",
				TTL: w.KeepResults, Storage: jetstream.FileStorage, Replicas: w.Replicas,
			})
			return err
		},
	})
}

// createBucket makes a bucket that no single message can empty: with rollups, who may write
// one key could.
func createBucket(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig) error {
	kv, err := js.CreateKeyValue(ctx, c)
	if err != nil {
		return err
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return err
	}
	config := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Config
	config.AllowRollup = false
	_, err = js.UpdateStream(ctx, config)
	return err
}

// side plans one of them.
func (p *Plan) side(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals, x *side) error {
	info, err := found(ctx, js, x.stream)
	if err != nil {
		return err
	}
	s := &Step{Kind: x.kind, Name: x.name, Is: x.is}
	if info == nil {
		s.Action = Create
		p.add(s, x.create)
		return takenSubjects(ctx, js, &jetstream.StreamConfig{Name: x.stream, Subjects: x.subjects()}, no)
	}
	c := info.Config
	refuseSide(x, &c, no)
	if x.asked != "" {
		s.Is = strings.Replace(x.is, lasting(x.keep), lasting(c.MaxAge), 1)
		if w.given(x.asked) && c.MaxAge != x.keep {
			s.Differs = append(s.Differs, "it keeps them "+lasting(c.MaxAge)+" and will keep them "+lasting(x.keep))
			c.MaxAge, s.Is = x.keep, x.is
		}
	}
	if x.kind == "bucket" && c.AllowRollup {
		s.Differs = append(s.Differs, "one message could empty it, and no longer will")
		c.AllowRollup = false
	}
	if c.MaxAge > 0 && c.Duplicates > c.MaxAge {
		c.Duplicates = c.MaxAge
	}
	if differ(s, w.given("replicas"), "the number of replicas", c.Replicas, w.Replicas) {
		c.Replicas = w.Replicas
	}
	p.add(s, func(ctx context.Context) error { _, err := js.UpdateStream(ctx, c); return err })
	return nil
}

// subjects are those that its stream will take.
func (x *side) subjects() []string {
	switch x.kind {
	case "bucket":
		return []string{"$KV." + x.name + ".>"}
	case "store":
		return []string{"$O." + x.name + ".C.>", "$O." + x.name + ".M.>"}
	}
	return []string{names.DeadSubjects(strings.TrimSuffix(x.name, "-dead"))}
}

func refuseSide(x *side, c *jetstream.StreamConfig, no *refusals) {
	switch {
	case c.Mirror != nil || len(c.Sources) > 0:
		no.add("%s %s gets what it holds from elsewhere: remove it, or use another --stream", x.kind, x.name)
	case c.Storage != jetstream.FileStorage:
		no.add("%s %s is kept in memory, where a restart of the server loses it: remove it, or use another --stream", x.kind, x.name)
	case c.Retention != jetstream.LimitsPolicy:
		no.add("%s %s drops what was read once: remove it, or use another --stream", x.kind, x.name)
	case x.kind == "stream" && !names.Covers(c.Subjects[0], names.DeadSubjects(strings.TrimSuffix(x.name, "-dead"))):
		no.add("stream %s is there and takes %s, so it is not that of dead letters: use another --stream", x.name, strings.Join(c.Subjects, ", "))
	}
}
