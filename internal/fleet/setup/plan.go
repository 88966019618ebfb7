// Package setup makes what agents need on a server, and opens it: the stream, its consumers,
// the buckets of results and of agents, the stream of dead letters, and the store of long
// replies.
//
// What is there already is held against what was asked for alone. What a server can change
// is changed; what agents cannot work with is refused, before anything is changed.
package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// What a step does.
const (
	Create = "create"
	Change = "change"
	Remove = "remove"
	Keep   = "keep"
)

// Step is about one thing on the server.
type Step struct {
	Kind    string   `json:"kind"` // stream, consumer, bucket, store
	Name    string   `json:"name"`
	Action  string   `json:"action"`
	Is      string   `json:"is"`                // what it is for
	Differs []string `json:"differs,omitempty"` // what is changed, from what to what
	Notes   []string `json:"notes,omitempty"`   // what a person should know and setup does not change

	apply func(context.Context) error
}

// Wanted is what setup was asked for. Durations of 0 mean for ever.
type Wanted struct {
	Stream      string
	Subjects    []string
	For         []string // filters of consumers; none: one consumer for all subjects
	MaxDeliver  int
	AckWait     time.Duration
	Duplicates  time.Duration
	KeepResults time.Duration
	KeepDead    time.Duration
	Replicas    int
	// Given names, as flags of setup, what was asked for explicitly. The rest holds only
	// for what is made now.
	Given map[string]bool
}

// reserved are subjects that the server and the agents use themselves.
var reserved = []string{"_hb.>", "$JS.>", "$KV.>", "$O.>", "$SYS.>", "_INBOX.>"}

// check refuses what could work on no server.
func (w *Wanted) check() error {
	problems := []error{message.CheckStream(w.Stream)}
	if w.AckWait < LeastAckWait {
		problems = append(problems, fmt.Errorf("--ack-wait is %v: an agent shows every third of it that it is there, at least a second apart, so it takes %v or more", w.AckWait, LeastAckWait))
	}
	if w.Duplicates < 100*time.Millisecond {
		problems = append(problems, fmt.Errorf("--duplicates is %v: a server takes 100ms or more", w.Duplicates))
	}
	for name, d := range map[string]time.Duration{"keep-results": w.KeepResults, "keep-dead": w.KeepDead} {
		if d > 0 && d < w.Duplicates {
			problems = append(problems, fmt.Errorf("--%s is %v, which is less than --duplicates (%v): make it longer", name, d, w.Duplicates))
		}
	}
	for _, subject := range slices.Concat(w.Subjects, w.For) {
		problems = append(problems, checkSubject(subject))
	}
	return errors.Join(append(problems, overlaps("--subjects", w.Subjects), overlaps("--for", w.For))...)
}

// CheckSubject refuses what is no subject of work. ">" stands for all subjects of a stream.
func CheckSubject(subject string) error {
	if subject == everything {
		return nil
	}
	return checkSubject(subject)
}

func checkSubject(subject string) error {
	if strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r == 0x7f }) || !server.IsValidSubject(subject) {
		return fmt.Errorf("%q is no subject: write words with dots between them, and > or * for any, such as work.>", subject)
	}
	for _, r := range reserved {
		if server.SubjectsCollide(subject, r) {
			return fmt.Errorf("subject %s overlaps %s, which the server or the agents need themselves: choose one such as work.>", subject, r)
		}
	}
	return nil
}

// overlaps refuses two subjects of one list that a message could have both.
func overlaps(flag string, list []string) error {
	for i, a := range list {
		for _, b := range list[:i] {
			if server.SubjectsCollide(a, b) {
				return fmt.Errorf("%s %s and %[1]s %[3]s overlap: one message would belong to both", flag, b, a)
			}
		}
	}
	return nil
}

// Plan is what has to be done so that all is as wanted.
type Plan struct {
	Steps []*Step

	js      jetstream.JetStream
	w       *Wanted
	ackWait time.Duration // the longest of the consumers
	no      []error       // why something cannot work
}

func (p *Plan) refuse(format string, args ...any) { p.no = append(p.no, fmt.Errorf(format, args...)) }

// Make holds what is on the server against what is wanted. It changes nothing. The error
// says all that cannot work.
func Make(ctx context.Context, js jetstream.JetStream, w *Wanted) (*Plan, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	p := &Plan{js: js, w: w}
	work, err := p.work(ctx)
	if err == nil {
		err = p.consumers(ctx, work)
	}
	if err == nil {
		err = p.sides(ctx)
	}
	if err != nil {
		return nil, readable(ctx, js, err)
	}
	return p, errors.Join(p.no...)
}

// Apply does what is to be done, in order. What was done before an error stays: applying a
// new plan goes on from there.
func (p *Plan) Apply(ctx context.Context) error {
	for _, s := range p.Steps {
		if s.Action == Keep {
			continue
		}
		if err := s.apply(ctx); err != nil {
			return fmt.Errorf("%s %s %s: %w", s.Action, s.Kind, s.Name, readable(ctx, p.js, err))
		}
	}
	return nil
}

// add adds a step about something that is there. It is kept where nothing differs.
func (p *Plan) add(s *Step, apply func(context.Context) error) {
	s.apply = apply
	if s.Action == "" {
		s.Action = Keep
		if len(s.Differs) > 0 {
			s.Action = Change
		}
	}
	p.Steps = append(p.Steps, s)
}

// change is [Plan.add] for a stream that is there and will have this configuration.
func (p *Plan) change(s *Step, c *jetstream.StreamConfig) {
	p.add(s, func(ctx context.Context) error { _, err := p.js.UpdateStream(ctx, *c); return err })
}

// differ sets what was asked for explicitly and is another, and notes that.
func differ[T comparable](s *Step, asked bool, what string, is *T, wanted T) {
	if asked && *is != wanted {
		s.Differs = append(s.Differs, fmt.Sprintf("%s is %v and becomes %v", what, *is, wanted))
		*is = wanted
	}
}

// found is the stream with a name, or nil.
func found(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return s, nil
}

// readable adds what to do to errors of JetStream as a whole.
func readable(ctx context.Context, js jetstream.JetStream, err error) error {
	// What a server says that cannot keep so many replicas.
	const noCluster, noPeers jetstream.ErrorCode = 10074, 10005
	var answer *jetstream.APIError
	switch err := link.Quorum(ctx, js, err); {
	case errors.Is(err, link.ErrNoQuorum):
		return err
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: start nats-server with --jetstream, or with jetstream {} in its configuration", err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account of this user needs jetstream: enabled in the server's configuration", err)
	case errors.As(err, &answer) && (answer.ErrorCode == noCluster || answer.ErrorCode == noPeers):
		return fmt.Errorf("%w: this server is in no cluster of so many servers: give --replicas 1, or leave the flag out", err)
	}
	return err
}

// missing says that setup was not run.
func missing(stream, what string) error {
	return fmt.Errorf("%s is not on this server: heartbeat-nats setup --stream %s makes it", what, stream)
}

func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

// lasting spells how long something is kept.
func lasting(d time.Duration) string {
	if d <= 0 {
		return "for ever"
	}
	return words.Took(d)
}
