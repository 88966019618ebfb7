package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
	"heartbeat/internal/task"
)

type nothing struct{}

// meant names the entry that a call is about, for an agent whose session may have another one by now.
type meant struct {
	Entry string `json:"entry,omitempty" jsonschema:"the id or entry_id of the entry that you mean, as task_current shows it: then nothing is said of another one, should your session work on that by now"`
}

type doneInput struct {
	meant
	Result string `json:"result,omitempty" jsonschema:"what came of the entry, for who sent it: a text or JSON, at most 256 KiB"`
}

type failInput struct {
	meant
	Reason     string `json:"reason" jsonschema:"why it cannot be done now, for who sent it"`
	RetryAfter string `json:"retry_after,omitempty" jsonschema:"how long to wait before it is tried again, such as 90s or 2h, at most 168h; at once if it is left out"`
}

type rejectInput struct {
	meant
	Reason string `json:"reason" jsonschema:"why it can never be done, for who sent it"`
}

type extendInput struct {
	meant
	For      string `json:"for" jsonschema:"for how long nobody should take the work for stuck, such as 30m, at most 168h"`
	Progress string `json:"progress,omitempty" jsonschema:"how far the work is, in a sentence"`
}

func (s *server) addAgent(m *sdk.Server) {
	add(m, "task_current", readOnly, "Show the entry that you work on, what was said of it so far, and which attempt this is.",
		func(context.Context, nothing) (task.Current, error) { return task.InFlight(s.box, s.caller) })
	add(m, "task_done", idempotent, "Say that the entry is done, and what came of it. It is acknowledged when your turn ends, so end it. Said again, the last word counts.",
		func(ctx context.Context, in doneInput) (task.Current, error) {
			return task.Done(ctx, s.box, s.caller.About(in.Entry), in.Result)
		})
	add(m, "task_fail", idempotent, "Give the entry back, to be tried again, now or later, as long as its attempts last. It goes back when your turn ends, so end it.",
		func(ctx context.Context, in failInput) (task.Current, error) {
			after, err := duration("retry_after", in.RetryAfter)
			if err != nil {
				return task.Current{}, err
			}
			return task.Fail(ctx, s.box, s.caller.About(in.Entry), in.Reason, after)
		})
	add(m, "task_reject", idempotent, "Say that the entry can never be done. A person finds it among the dead letters when your turn has ended, so end it.",
		func(ctx context.Context, in rejectInput) (task.Current, error) {
			return task.Reject(ctx, s.box, s.caller.About(in.Entry), in.Reason)
		})
	add(m, "task_extend", idempotent, "Say that the work takes long, and how far it is. No limit of cost or time is lifted by that.",
		func(ctx context.Context, in extendInput) (task.Current, error) {
			length, err := duration("for", in.For)
			if err != nil {
				return task.Current{}, err
			}
			return task.Extend(ctx, s.box, s.caller.About(in.Entry), length, in.Progress)
		})
	about := "Send an entry, to be worked on after those that wait, in a turn of its own."
	if len(s.to) > 0 {
		about += " It goes to your own inbox, or with to = NAME to one of: " + strings.Join(slices.Sorted(maps.Keys(s.to)), ", ") + "."
	}
	add(m, "enqueue", additive, about, s.enqueueAsAgent)
}

func duration(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is %q: a time such as 90s, 30m or 2h is needed", name, text)
	}
	return d, nil
}

type enqueueInput struct {
	Prompt    string         `json:"prompt" jsonschema:"the text that the agent gets"`
	ID        string         `json:"id,omitempty" jsonschema:"a name for the entry: sending it twice sends it once"`
	NotBefore string         `json:"not_before,omitempty" jsonschema:"when it may be delivered at the earliest, as 2026-01-02T15:04:05Z"`
	Expires   string         `json:"expires,omitempty" jsonschema:"when it is too late to deliver it, as 2026-01-02T15:04:05Z"`
	Meta      map[string]any `json:"meta,omitempty" jsonschema:"members that travel with the entry into its result"`
}

type enqueueAsAgentInput struct {
	enqueueInput
	To string `json:"to,omitempty" jsonschema:"the name of another inbox; your own one if it is left out"`
}

func (in enqueueInput) message() (m inbox.Message, err error) {
	m = inbox.Message{ID: in.ID, Text: in.Prompt, Metadata: in.Meta}
	for _, at := range []struct {
		name, text string
		into       *time.Time
	}{{"not_before", in.NotBefore, &m.NotBefore}, {"expires", in.Expires, &m.Expires}} {
		if at.text == "" {
			continue
		}
		if *at.into, err = time.Parse(time.RFC3339, at.text); err != nil {
			return m, fmt.Errorf("%s is %q: a time such as 2026-01-02T15:04:05Z is needed", at.name, at.text)
		}
	}
	switch {
	case m.Expires.IsZero() || m.Expires.After(m.NotBefore) && m.Expires.After(time.Now()):
		return m, m.Check()
	case m.Expires.After(m.NotBefore):
		return m, fmt.Errorf("expires %s has passed: the entry would be set aside at once; it is %s now", in.Expires, time.Now().UTC().Format(time.RFC3339))
	}
	return m, errors.New("expires comes before not_before: the entry would be set aside at once")
}

func (s *server) enqueueAsAgent(ctx context.Context, in enqueueAsAgentInput) (inbox.Receipt, error) {
	into := s.box
	if in.To != "" {
		if into = s.to[in.To]; into == nil {
			known := "this server was given none beside your own"
			if len(s.to) > 0 {
				known = "there are " + strings.Join(slices.Sorted(maps.Keys(s.to)), ", ")
			}
			return inbox.Receipt{}, fmt.Errorf("there is no inbox %q to send to: %s", in.To, known)
		}
	}
	m, err := in.message()
	if err != nil {
		return inbox.Receipt{}, err
	}
	return task.Enqueue(ctx, s.box, into, s.caller, m, s.rate)
}

// What a tool does to the inbox, and to nothing else. Clients decide by it whether to ask a person before a call.
var (
	readOnly    = sdk.ToolAnnotations{ReadOnlyHint: true}
	additive    = sdk.ToolAnnotations{}
	idempotent  = sdk.ToolAnnotations{IdempotentHint: true}
	destructive = sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(true)}
)

// shapes are the types whose JSON differs from their Go kind.
var shapes = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[price.Nanos]():     {Type: "number"},
	reflect.TypeFor[json.Number]():     {Type: "number"},
}

// add adds a tool with structured output. The model reads an error of do, which is the tool's, not the protocol's. The
// output is returned even if it does not fit the schema.
func add[In, Out any](m *sdk.Server, name string, does sdk.ToolAnnotations, about string, do func(context.Context, In) (Out, error)) {
	output, err := jsonschema.For[Out](&jsonschema.ForOptions{TypeSchemas: shapes})
	if err != nil {
		panic(err) // only for a faulty type in this package
	}
	if does.OpenWorldHint = new(false); does.DestructiveHint == nil {
		does.DestructiveHint = new(false)
	}
	sdk.AddTool(m, &sdk.Tool{Name: name, Description: about, Annotations: &does, OutputSchema: output}, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		text, err := json.Marshal(out)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil, nil
	})
}
