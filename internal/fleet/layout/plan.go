package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// Plan is what has to be done so that all is as wanted.
type Plan struct{ Steps []*Step }

// refusals collects why something cannot work.
type refusals []error

func (r *refusals) add(format string, args ...any) { *r = append(*r, fmt.Errorf(format, args...)) }

// Make holds what is on the server against what is wanted. It changes nothing. The error
// says all that cannot work.
func Make(ctx context.Context, js jetstream.JetStream, w *Wanted) (*Plan, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	var no refusals
	p := &Plan{}
	work, err := p.work(ctx, js, w, &no)
	if err != nil {
		return nil, readable(err)
	}
	for _, side := range []func() error{
		func() error { return p.consumers(ctx, js, w, work, &no) },
		func() error { return p.results(ctx, js, w, &no) },
		func() error { return p.agents(ctx, js, w, &no) },
		func() error { return p.dead(ctx, js, w, &no) },
		func() error { return p.replies(ctx, js, w, &no) },
	} {
		if err := side(); err != nil {
			return nil, readable(err)
		}
	}
	return p, errors.Join(no...)
}

// Apply does what is to be done, in order. What was done before an error stays: applying a
// new plan goes on from there.
func (p *Plan) Apply(ctx context.Context) error {
	for _, s := range p.Steps {
		if s.Action == Keep {
			continue
		}
		if err := s.apply(ctx); err != nil {
			return fmt.Errorf("%s %s %s: %w", s.Action, s.Kind, s.Name, readable(err))
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

// readable adds what to do to errors of JetStream as a whole.
func readable(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: start nats-server with --jetstream, or with jetstream {} in its configuration", err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account of this user needs jetstream: enabled in the server's configuration", err)
	case errors.As(err, &answer) && (answer.ErrorCode == codeNoCluster || answer.ErrorCode == codeNoPeers):
		return fmt.Errorf("%w: this server is in no cluster of so many servers: give --replicas 1, or leave the flag out", err)
	}
	return err
}

// What a server says that cannot keep so many replicas.
const (
	codeNoCluster jetstream.ErrorCode = 10074
	codeNoPeers   jetstream.ErrorCode = 10005
)

// missing says that setup was not run.
func missing(stream, what string) error {
	return fmt.Errorf("%s is not on this server: heartbeat-nats setup --stream %s makes it", what, stream)
}

// differ notes a setting that was asked for and is another.
func differ[T comparable](s *Step, asked bool, what string, is, wanted T) bool {
	if !asked || is == wanted {
		return false
	}
	s.Differs = append(s.Differs, fmt.Sprintf("%s is %v and becomes %v", what, is, wanted))
	return true
}

// found is the stream with a name, or nil.
func found(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return s.CachedInfo(), nil
}
