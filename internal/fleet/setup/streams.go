package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
)

// work plans the stream of messages. The configuration is that which the stream will have.
func (p *Plan) work(ctx context.Context) (*jetstream.StreamConfig, error) {
	w := p.w
	is, err := found(ctx, p.js, w.Stream)
	if err != nil {
		return nil, err
	}
	s := &Step{Kind: "stream", Name: w.Stream}
	if is == nil {
		c := &jetstream.StreamConfig{
			Name: w.Stream, Description: "messages for the agents of heartbeat-nats", Subjects: w.Subjects,
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
			Duplicates: w.Duplicates, Replicas: w.Replicas,
		}
		if len(c.Subjects) == 0 {
			c.Subjects = []string{strings.ToLower(w.Stream) + ".>"}
		}
		s.Action, s.Is = Create, "messages of "+strings.Join(c.Subjects, ", ")
		p.add(s, func(ctx context.Context) error { _, err := p.js.CreateStream(ctx, *c); return err })
		return c, p.refuseTaken(ctx, c.Name, c.Subjects)
	}
	c := &is.CachedInfo().Config
	p.refuseWork(c)
	if w.Given["subjects"] && !sameSet(c.Subjects, w.Subjects) {
		s.Differs = append(s.Differs, fmt.Sprintf("it takes %s and will take %s", strings.Join(c.Subjects, ", "), strings.Join(w.Subjects, ", ")))
		c.Subjects = w.Subjects
	}
	differ(s, w.Given["duplicates"], "the window for duplicates", &c.Duplicates, w.Duplicates)
	differ(s, w.Given["replicas"], "the number of replicas", &c.Replicas, w.Replicas)
	if c.Discard != jetstream.DiscardNew && c.MaxAge == 0 {
		s.Differs = append(s.Differs, "when it is full it drops old messages, and will refuse new ones")
		c.Discard = jetstream.DiscardNew
	}
	// Limits by which messages go without an answer.
	if c.MaxAge > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("it drops messages that are older than %v, answered or not: nats stream edit %s --max-age 0 stops that", c.MaxAge, c.Name))
	}
	if c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject {
		s.Notes = append(s.Notes, fmt.Sprintf("it keeps only %d messages of a subject and drops older ones, answered or not: nats stream edit %s --max-msgs-per-subject -1 stops that", c.MaxMsgsPerSubject, c.Name))
	}
	s.Is = "messages of " + strings.Join(c.Subjects, ", ")
	p.change(s, c)
	return c, p.refuseTaken(ctx, c.Name, c.Subjects)
}

// refuseWork says what agents cannot work with, and setup cannot change.
func (p *Plan) refuseWork(c *jetstream.StreamConfig) {
	const other = "use another name with --stream, or remove it if its messages are not needed"
	if c.Mirror != nil || len(c.Sources) > 0 {
		p.refuse("stream %s gets its messages from another stream: what is settled here would stay there: run setup on that one, or %s", c.Name, other)
	}
	if c.Retention != jetstream.WorkQueuePolicy {
		p.refuse("stream %s keeps messages by %s, and not until they are settled, as a work queue does: %s", c.Name, strings.ToLower(c.Retention.String()), other)
	}
	if c.Storage != jetstream.FileStorage {
		p.refuse("stream %s keeps its messages in memory, where a restart of the server loses them: %s", c.Name, other)
	}
	if c.NoAck {
		p.refuse("stream %s does not acknowledge what is sent, so nobody knows whether it arrived: %s", c.Name, other)
	}
	if c.PersistMode != jetstream.DefaultPersistMode {
		p.refuse("stream %s acknowledges messages before they are in its files: %s", c.Name, other)
	}
	if c.Sealed {
		p.refuse("stream %s is sealed: nothing can be sent to it, and nothing settled: %s", c.Name, other)
	}
}

// refuseTaken refuses subjects that another stream takes.
func (p *Plan) refuseTaken(ctx context.Context, stream string, subjects []string) error {
	for _, subject := range subjects {
		list := p.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for name := range list.Name() {
			switch {
			case name == stream:
			case strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_"):
				p.refuse("stream %s takes %s, or some of it, which agents need themselves: use another name with --stream, or take that subject from it", name, subject)
			default:
				p.refuse("stream %s takes %s, or some of it: name subjects that no other stream has with --subjects, or use that stream with --stream %[1]s", name, subject)
			}
		}
		if err := list.Err(); err != nil {
			return fmt.Errorf("look for other streams that take %s: %w", subject, err)
		}
	}
	return nil
}

// agentsTTL is how long what agents say of themselves stays, and with it their counts of
// messages that were given back.
const agentsTTL = 30 * 24 * time.Hour

// side is a stream beside that of the messages: that of a bucket, of a store, or of dead
// letters.
type side struct {
	kind, name, is string
	stream         string        // the name of its stream
	subjects       []string      // those that its stream takes
	keep           time.Duration // 0: for ever
	asked          string        // the flag that says how long, or nothing
	create         func(context.Context) error
}

func (p *Plan) sides(ctx context.Context) error {
	w := p.w
	bucket := func(name, is, description string, keep time.Duration, asked string) side {
		return side{
			kind: "bucket", name: name, is: is, stream: "KV_" + name, subjects: []string{"$KV." + name + ".>"}, keep: keep, asked: asked,
			create: func(ctx context.Context) error {
				return createBucket(ctx, p.js, jetstream.KeyValueConfig{Bucket: name, Description: description, TTL: keep, Storage: jetstream.FileStorage, Replicas: w.Replicas})
			},
		}
	}
	dead, replies := message.Dead(w.Stream), message.Replies(w.Stream)
	for _, x := range []side{
		bucket(message.Bucket(w.Stream), "results, kept "+lasting(w.KeepResults), "who was first to settle a message of "+w.Stream, w.KeepResults, "keep-results"),
		bucket(message.Agents(w.Stream), "what agents say of themselves", "the agents of "+w.Stream, agentsTTL, ""),
		{
			kind: "stream", name: dead, is: "dead letters, kept " + lasting(w.KeepDead), stream: dead,
			subjects: []string{message.DeadSubjects(w.Stream)}, keep: w.KeepDead, asked: "keep-dead",
			create: func(ctx context.Context) error {
				_, err := p.js.CreateStream(ctx, jetstream.StreamConfig{
					Name: dead, Description: "messages of " + w.Stream + " that nobody will answer", Subjects: []string{message.DeadSubjects(w.Stream)},
					Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
					MaxAge: w.KeepDead, Duplicates: w.Duplicates, Replicas: w.Replicas, AllowDirect: true,
				})
				return err
			},
		},
		{
			kind: "store", name: replies, is: "long replies, kept " + lasting(w.KeepResults), stream: "OBJ_" + replies,
			subjects: []string{"$O." + replies + ".C.>", "$O." + replies + ".M.>"}, keep: w.KeepResults, asked: "keep-results",
			create: func(ctx context.Context) error {
				_, err := p.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
					Bucket: replies, Description: "replies of " + w.Stream + " that are too long for a message",
					TTL: w.KeepResults, Storage: jetstream.FileStorage, Replicas: w.Replicas,
				})
				return err
			},
		},
	} {
		if err := p.side(ctx, &x); err != nil {
			return err
		}
	}
	return nil
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

// checkKeep refuses results that are gone before the message can come again that they settle: it
// would be worked on once more, and answered.
func (p *Plan) checkKeep(x *side, keep time.Duration) {
	if x.name == message.Bucket(p.w.Stream) && keep > 0 && keep < 2*p.ackWait {
		p.refuse("results would be kept %s, and a message can come again after an AckWait of %s: --keep-results has to be at least twice --ack-wait", lasting(keep), lasting(p.ackWait))
	}
}

// side plans one of them.
func (p *Plan) side(ctx context.Context, x *side) error {
	is, err := found(ctx, p.js, x.stream)
	if err != nil {
		return err
	}
	s := &Step{Kind: x.kind, Name: x.name, Is: x.is}
	if is == nil {
		p.checkKeep(x, x.keep)
		s.Action = Create
		p.add(s, x.create)
		return p.refuseTaken(ctx, x.stream, x.subjects)
	}
	c := &is.CachedInfo().Config
	switch {
	case c.Mirror != nil || len(c.Sources) > 0:
		p.refuse("%s %s gets what it holds from elsewhere: remove it, or use another --stream", x.kind, x.name)
	case c.Storage != jetstream.FileStorage:
		p.refuse("%s %s is kept in memory, where a restart of the server loses it: remove it, or use another --stream", x.kind, x.name)
	case c.Retention != jetstream.LimitsPolicy:
		p.refuse("%s %s drops what was read once: remove it, or use another --stream", x.kind, x.name)
	case x.kind == "stream" && !server.SubjectMatchesFilter(x.subjects[0], c.Subjects[0]):
		p.refuse("stream %s is there and takes %s, so it is not that of dead letters: use another --stream", x.name, strings.Join(c.Subjects, ", "))
	}
	if x.asked != "" {
		s.Is = strings.Replace(x.is, lasting(x.keep), lasting(c.MaxAge), 1)
		if p.w.Given[x.asked] && c.MaxAge != x.keep {
			s.Differs = append(s.Differs, "it keeps them "+lasting(c.MaxAge)+" and will keep them "+lasting(x.keep))
			c.MaxAge, s.Is = x.keep, x.is
		}
		p.checkKeep(x, c.MaxAge)
	}
	if x.kind == "bucket" && c.AllowRollup {
		s.Differs = append(s.Differs, "one message could empty it, and no longer will")
		c.AllowRollup = false
	}
	if c.MaxAge > 0 && c.Duplicates > c.MaxAge {
		c.Duplicates = c.MaxAge
	}
	differ(s, p.w.Given["replicas"], "the number of replicas", &c.Replicas, p.w.Replicas)
	p.change(s, c)
	return nil
}

// Takes reports whether a stream takes a subject.
func Takes(s jetstream.Stream, subject string) bool {
	return len(uncovered([]string{subject}, s.CachedInfo().Config.Subjects)) == 0
}

// uncovered are the subjects of a stream of which no filter takes all.
func uncovered(subjects, filters []string) (open []string) {
	for _, s := range subjects {
		if !slices.ContainsFunc(filters, func(f string) bool { return server.SubjectMatchesFilter(s, f) }) {
			open = append(open, s)
		}
	}
	return open
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
