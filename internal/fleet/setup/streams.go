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
	"heartbeat/internal/words"
)

// part is a stream that setup makes: for messages, for a bucket, for a store, or for dead letters.
type part struct {
	kind, name, is string // for people
	flag           string // says for how long the part keeps its messages, or is ""
	wanted         jetstream.StreamConfig
}

func (p *Plan) part(kind, name, is, flag string, c jetstream.StreamConfig) *part {
	c.Storage, c.Discard, c.Replicas = jetstream.FileStorage, jetstream.DiscardNew, p.w.Replicas
	return &part{kind, name, is, flag, c}
}

// bucket returns a bucket without rollups: with them, whoever may write one key could empty it with one message.
func (p *Plan) bucket(name, is, description string, keep time.Duration, flag string) *part {
	x := p.part("bucket", name, is, flag, jetstream.StreamConfig{
		Name: "KV_" + name, Description: description, Subjects: []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1, DenyDelete: true, AllowDirect: true, AllowAtomicPublish: true, AllowMsgTTL: true,
	})
	x.keepFor(&x.wanted, keep)
	return x
}

// The bucket of results keeps leases for at least fence, even if results expire sooner: a settled message that could
// not be taken off its stream must not be worked on again.
const (
	fence      = 24 * time.Hour
	resultsFor = "heartbeat-keep-results" // in the bucket's metadata; without it, results are kept as long as leases
)

// ResultsFor returns for how long a bucket keeps results, 0 for ever. own reports that this is shorter than the
// bucket's own limit, so that each result has to name it.
func ResultsFor(c *jetstream.StreamConfig) (keep time.Duration, own bool) {
	if d, err := time.ParseDuration(c.Metadata[resultsFor]); err == nil && d > 0 {
		return d, true
	}
	return c.MaxAge, false
}

func (x *part) keepFor(c *jetstream.StreamConfig, keep time.Duration) {
	c.MaxAge = keep
	if x.kind != "bucket" {
		return
	}
	delete(c.Metadata, resultsFor)
	if keep > 0 && keep < fence {
		c.MaxAge, c.AllowMsgTTL = fence, true
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[resultsFor] = keep.String()
	}
}

// agentsTTL is how long an agent's presence is kept.
const agentsTTL = 30 * 24 * time.Hour

// work plans the stream of messages, and returns its future configuration.
func (p *Plan) work(ctx context.Context) (*jetstream.StreamConfig, error) {
	w := p.w
	x := p.part("stream", w.Stream, "", "", jetstream.StreamConfig{
		Name: w.Stream, Description: "messages for the agents of heartbeat-nats", Subjects: w.Subjects,
		Retention: jetstream.WorkQueuePolicy, Duplicates: w.Duplicates,
	})
	if len(w.Subjects) == 0 {
		x.wanted.Subjects = []string{strings.ToLower(w.Stream) + ".>"}
	}
	s, c, isThere, err := p.inspect(ctx, x)
	if err != nil {
		return nil, err
	}
	if isThere {
		takes := fmt.Sprintf("it takes %s and will take %s", strings.Join(c.Subjects, ", "), strings.Join(w.Subjects, ", "))
		change(s, w.Given["subjects"] && !sameSet(c.Subjects, w.Subjects), takes, &c.Subjects, w.Subjects)
		differ(s, w.Given["duplicates"], "the window for duplicates", &c.Duplicates, w.Duplicates)
		change(s, c.Discard != jetstream.DiscardNew && c.MaxAge == 0, "when it is full it drops old messages, and will refuse new ones", &c.Discard, jetstream.DiscardNew)
		s.Notes = append(s.Notes, Drops(c)...)
	}
	s.Is = "messages of " + strings.Join(c.Subjects, ", ")
	p.addStream(s, c)
	return c, p.refuseTaken(ctx, c)
}

// Drops returns a sentence for each limit by which a stream drops unanswered messages.
func Drops(c *jetstream.StreamConfig) (notes []string) {
	if c.MaxAge > 0 {
		notes = append(notes, fmt.Sprintf("it drops messages that are older than %v, answered or not: nats stream edit %s --max-age 0 stops that", c.MaxAge, c.Name))
	}
	if c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject {
		notes = append(notes, fmt.Sprintf("it keeps only %s of a subject and drops older ones, answered or not: nats stream edit %s --max-msgs-per-subject -1 stops that", words.Count(int(c.MaxMsgsPerSubject), "message", "messages"), c.Name))
	}
	return notes
}

// inspect compares a part with the server. It refuses an existing part that agents cannot work with and setup cannot
// change. c is the existing configuration, or the one to create the part with.
func (p *Plan) inspect(ctx context.Context, x *part) (s *Step, c *jetstream.StreamConfig, isThere bool, err error) {
	s = &Step{Kind: x.kind, Name: x.name, Is: x.is}
	existing, err := findStream(ctx, p.js, x.wanted.Name)
	if existing == nil || err != nil {
		s.Action = Create
		return s, &x.wanted, false, err
	}
	c = &existing.CachedInfo().Config
	for _, fault := range []struct {
		isSo bool
		why  string
	}{
		{c.Mirror != nil || len(c.Sources) > 0, "gets its messages from another stream, where what is settled here would stay"},
		{c.SubjectTransform != nil, "keeps messages under other subjects than they are sent to, which nobody would find there"},
		{c.Retention != x.wanted.Retention, "keeps messages by " + strings.ToLower(c.Retention.String()) + ", and not by " + strings.ToLower(x.wanted.Retention.String())},
		{c.Storage != jetstream.FileStorage, "is kept in memory, where a restart of the server loses it"},
		{c.NoAck, "does not acknowledge what is sent, so nobody knows whether it arrived"},
		{c.PersistMode != jetstream.DefaultPersistMode, "acknowledges messages before they are in its files"},
		{c.Sealed, "is sealed: nothing can be sent to it, and nothing settled"},
		{x.name == message.Dead(p.w.Stream) && len(uncovered(x.wanted.Subjects, c.Subjects)) > 0, "takes " + strings.Join(c.Subjects, ", ") + ", so it is not that of dead letters"},
	} {
		if fault.isSo {
			p.refuse("%s %s %s: use another name with --stream, or remove it if nothing in it is needed", x.kind, x.name, fault.why)
		}
	}
	differ(s, p.w.Given["replicas"], "the number of replicas", &c.Replicas, p.w.Replicas)
	return s, c, true, nil
}

func (p *Plan) addStream(s *Step, c *jetstream.StreamConfig) {
	p.add(s, func(ctx context.Context) (err error) {
		if s.Action == Create {
			_, err = p.js.CreateStream(ctx, *c)
		} else {
			_, err = p.js.UpdateStream(ctx, *c)
		}
		return err
	})
}

// refuseTaken refuses subjects of a stream that another stream takes.
func (p *Plan) refuseTaken(ctx context.Context, c *jetstream.StreamConfig) error {
	for _, subject := range c.Subjects {
		list := p.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for name := range list.Name() {
			switch {
			case name == c.Name:
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

// TooOld refuses servers up to 2.12.0, which compare each revision of a batch with that of the batch's last key.
func TooOld(js jetstream.JetStream) error {
	var v [3]int
	version := js.Conn().ConnectedServerVersion()
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n == len(v) && slices.Compare(v[:], []int{2, 12, 1}) < 0 {
		return fmt.Errorf("the server has version %s and writes one key at a time: agents need nats-server 2.12.1 or later", version)
	}
	return nil
}

// sides plans the parts beside the stream.
func (p *Plan) sides(ctx context.Context) error {
	w := p.w
	p.refusals = append(p.refusals, TooOld(p.js))
	results, dead, replies := message.Bucket(w.Stream), message.Dead(w.Stream), message.Replies(w.Stream)
	for _, x := range []*part{
		p.bucket(results, "results, kept "+lasting(w.KeepResults), "who was first to settle a message of "+w.Stream, w.KeepResults, "keep-results"),
		p.bucket(message.Agents(w.Stream), "what agents say of themselves", "the agents of "+w.Stream, agentsTTL, ""),
		p.part("stream", dead, "dead letters, kept "+lasting(w.KeepDead), "keep-dead", jetstream.StreamConfig{
			Name: dead, Description: "messages of " + w.Stream + " that nobody will answer", Subjects: []string{message.DeadSubjects(w.Stream)},
			MaxAge: w.KeepDead, Duplicates: w.Duplicates, AllowDirect: true,
		}),
		p.part("store", replies, "long replies, kept "+lasting(w.KeepResults), "keep-results", jetstream.StreamConfig{
			Name: "OBJ_" + replies, Description: "replies of " + w.Stream + " that are too long for a message",
			Subjects: []string{"$O." + replies + ".C.>", "$O." + replies + ".M.>"},
			MaxAge:   w.KeepResults, AllowRollup: true, AllowDirect: true,
		}),
	} {
		s, c, isThere, err := p.inspect(ctx, x)
		if err == nil && !isThere {
			err = p.refuseTaken(ctx, c)
		}
		if err != nil {
			return err
		}
		keep, own := ResultsFor(c)
		if wanted, _ := ResultsFor(&x.wanted); isThere && x.flag != "" {
			s.Is = strings.Replace(x.is, lasting(wanted), lasting(keep), 1)
			if w.Given[x.flag] && keep != wanted {
				s.Differs = append(s.Differs, "it keeps them "+lasting(keep)+" and will keep them "+lasting(wanted))
				keep, s.Is = wanted, x.is
				x.keepFor(c, keep)
				if _, will := ResultsFor(c); x.kind == "bucket" && (own || will) {
					s.Notes = append(s.Notes, "agents that run keep their results as long as before until they start again")
				}
			}
		}
		// If a result expires before its message can come again, the message is worked on and answered twice.
		if x.name == results && keep > 0 && keep < 2*p.ackWait {
			p.refuse("results would be kept %s, and a message can come again after an AckWait of %s: --keep-results has to be at least twice --ack-wait", lasting(keep), lasting(p.ackWait))
		}
		if isThere && x.name == results && keep > 0 && keep < fence && !own {
			s.Differs = append(s.Differs, "it forgets who settled a message when it forgets the result, and will know that for "+lasting(fence))
			x.keepFor(c, keep)
		}
		if isThere && x.kind == "bucket" {
			change(s, c.AllowRollup, "one message could empty it, and no longer will", &c.AllowRollup, false)
			change(s, !c.AllowAtomicPublish, "it takes one key at a time, and will take several in one step", &c.AllowAtomicPublish, true)
		}
		change(s, isThere && x.name == message.Agents(w.Stream) && !c.AllowMsgTTL, "it forgets which agents are to drain, and no longer will", &c.AllowMsgTTL, true)
		if c.MaxAge > 0 { // a server refuses a longer window
			c.Duplicates = min(c.Duplicates, c.MaxAge)
		}
		p.addStream(s, c)
	}
	return nil
}

// Takes reports whether one of the filters takes a subject whole.
func Takes(filters []string, subject string) bool {
	return slices.ContainsFunc(filters, func(f string) bool { return server.SubjectMatchesFilter(subject, f) })
}

// uncovered returns the subjects that no single filter takes whole.
func uncovered(subjects, filters []string) []string {
	return slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return Takes(filters, s) })
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
