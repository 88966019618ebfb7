// Package setup makes what agents need on a server, and opens it: the stream, its consumers, the buckets of results
// and of agents, the stream of dead letters, and the store of long replies.
//
// Setup compares existing parts only with what was asked for explicitly, and changes what a server can change.
// Before it changes anything, it refuses what agents cannot work with.
package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// Actions of a step.
const (
	Create = "create"
	Change = "change"
	Remove = "remove"
	Keep   = "keep"
)

// Step is what a plan does about one part on the server.
type Step struct {
	Kind    string   `json:"kind"` // "stream", "consumer", "bucket" or "store"
	Name    string   `json:"name"`
	Action  string   `json:"action"`
	Is      string   `json:"is"` // what it is for
	Differs []string `json:"differs,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	apply func(context.Context) error
}

// Wanted is what setup was asked for. A duration of 0 means for ever.
type Wanted struct {
	Stream      string
	Subjects    []string
	For         []string // filters of consumers; if empty, one consumer takes all subjects
	MaxDeliver  int
	AckWait     time.Duration
	Duplicates  time.Duration
	KeepResults time.Duration
	KeepDead    time.Duration
	Replicas    int
	// Given names the flags of setup that were given. The other values apply only to parts that setup creates.
	Given map[string]bool
}

// reserved are the server's own subjects, and those of the agents.
var reserved = []string{"_hb.>", "$JS.>", "$KV.>", "$O.>", "$SYS.>", "_INBOX.>"}

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
		problems = append(problems, CheckSubject(subject))
	}
	return errors.Join(append(problems, overlaps("--subjects", w.Subjects), overlaps("--for", w.For))...)
}

// CheckSubject refuses a subject that cannot carry work.
func CheckSubject(subject string) error {
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

// Plan holds the steps that make the server as wanted.
type Plan struct {
	Steps []*Step

	js       jetstream.JetStream
	w        *Wanted
	ackWait  time.Duration // the longest of the consumers
	refusals []error       // why something cannot work
}

func (p *Plan) refuse(format string, args ...any) {
	p.refusals = append(p.refusals, fmt.Errorf(format, args...))
}

// Make compares the server with what is wanted. It changes nothing. The error names everything that cannot work.
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
		return nil, err
	}
	return p, errors.Join(p.refusals...)
}

// Apply runs the steps in order. Steps before an error stay done; a new plan continues from there.
func (p *Plan) Apply(ctx context.Context) error {
	for _, s := range p.Steps {
		if s.Action == Keep {
			continue
		}
		err := s.apply(ctx)
		var answer *jetstream.APIError
		noServers := []server.ErrorIdentifier{server.JSStreamReplicasNotSupportedErr, server.JSClusterNoPeersErrF}
		if errors.As(err, &answer) && slices.Contains(noServers, server.ErrorIdentifier(answer.ErrorCode)) {
			err = fmt.Errorf("%w: this server is in no cluster of so many servers: give --replicas 1, or leave the flag out", err)
		}
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", s.Action, s.Kind, s.Name, err)
		}
	}
	return nil
}

// add adds a step. A step without an action changes its part if anything differs, and keeps it otherwise.
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

// change sets a value as wanted if it differs, and notes how it differs.
func change[T any](s *Step, differs bool, how string, value *T, wanted T) {
	if differs {
		s.Differs = append(s.Differs, how)
		*value = wanted
	}
}

// differ is change for a value that matters only if it was asked for explicitly.
func differ[T comparable](s *Step, asked bool, what string, value *T, wanted T) {
	change(s, asked && *value != wanted, fmt.Sprintf("%s is %v and becomes %v", what, *value, wanted), value, wanted)
}

// findStream returns the named stream, or nil.
func findStream(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return s, nil
}

// Command returns the setup command for a stream, for a person to type.
func Command(js jetstream.JetStream, stream string, args ...string) string {
	return link.Typed(js.Conn(), "setup", append([]string{"--stream", stream}, args...)...)
}

// missing says what makes a part, unless that would refuse the server.
func missing(js jetstream.JetStream, stream, what string) error {
	if err := TooOld(js); err != nil {
		return err
	}
	return fmt.Errorf("%s is not on this server: %s makes it", what, Command(js, stream))
}

func lasting(d time.Duration) string {
	if d <= 0 {
		return "for ever"
	}
	return words.Took(d)
}

// Layout is all that setup makes for one stream, but for its consumers.
type Layout struct {
	Stream  jetstream.Stream
	Results jetstream.KeyValue
	Agents  jetstream.KeyValue
	Dead    jetstream.Stream
	Replies jetstream.ObjectStore
}

// Open opens the whole layout. The error names a missing part and the command that makes it.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (l *Layout, err error) {
	if err := message.CheckStream(stream); err != nil {
		return nil, err
	}
	l = &Layout{}
	for _, part := range []struct {
		what string
		open func() error
	}{
		{"stream " + stream, func() error { l.Stream, err = js.Stream(ctx, stream); return err }},
		{"bucket " + message.Bucket(stream), func() error { l.Results, err = js.KeyValue(ctx, message.Bucket(stream)); return err }},
		{"bucket " + message.Agents(stream), func() error { l.Agents, err = js.KeyValue(ctx, message.Agents(stream)); return err }},
		{"stream " + message.Dead(stream), func() error { l.Dead, err = js.Stream(ctx, message.Dead(stream)); return err }},
		{"store " + message.Replies(stream), func() error { l.Replies, err = js.ObjectStore(ctx, message.Replies(stream)); return err }},
	} {
		if err := part.open(); errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, missing(js, stream, part.what)
		} else if err != nil {
			return nil, fmt.Errorf("open %s: %w", part.what, err)
		}
	}
	return l, nil
}

// StreamFor returns the name of the stream that takes a subject.
func StreamFor(ctx context.Context, js jetstream.JetStream, subject string) (string, error) {
	if err := CheckSubject(subject); err != nil {
		return "", err
	}
	name, err := js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", fmt.Errorf("no stream of this server takes %s: %s makes one", subject, Command(js, "NAME", "--subjects", subject))
	}
	if err != nil {
		return "", fmt.Errorf("look for the stream of %s: %w", subject, err)
	}
	return name, nil
}
