package guild

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// MaxToolAnswer is the largest answer to a tool call, in bytes.
const MaxToolAnswer = 64 << 20

// Tool is a tool of the guild.
type Tool struct {
	Name string
	// Method is GET, POST or DELETE; empty is POST.
	Method string
	// Idempotent says that the guild carries out calls with the same Idempotency-Key
	// once. Then a call is repeated even if it may have reached the guild. The header
	// is always sent, but a guild that ignores it would run the tool twice, so the
	// tool's definition has to say this.
	Idempotent bool
}

// Tool calls a tool and returns its answer as text: a JSON string as what it says,
// anything else as JSON with two blanks a level, and an empty answer as "". args is a
// JSON object, or empty for none.
//
// The error's text is what the agent is told. It is a [*Refused] (at once, whatever
// the status), an [*Unreachable] (after 60 s of attempts that sent nothing), an
// [*Unanswered], or says what is wrong with the call or its answer.
func (c *Client) Tool(ctx context.Context, tool Tool, args json.RawMessage) (string, error) {
	r, err := toolRequest(tool, args)
	if err != nil {
		return "", err
	}
	r.timeout, r.limit, r.key = c.timeout, c.limit, rand.Text()
	var text string
	err = c.persist(ctx, patience, func() (bool, error) {
		a, failure := c.attempt(ctx, r)
		if failure != nil {
			var long *tooLong
			switch repeatable := tool.Idempotent || !failure.sent; {
			case failure.hope && repeatable:
				return true, failure.err
			case failure.sent && !errors.As(failure.err, &long):
				return false, &Unanswered{failure.err}
			}
			return false, failure.err
		}
		if !a.good() {
			return false, a.refused()
		}
		text, err = textOf(a.body)
		return false, err
	})
	return text, err
}

func toolRequest(tool Tool, args json.RawMessage) (*request, error) {
	route, err := Route(tool.Name)
	if err != nil {
		return nil, err
	}
	r := &request{method: tool.Method, target: route}
	if r.method == "" {
		r.method = http.MethodPost
	}
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	switch r.method {
	case http.MethodGet:
		query, err := queryOf(args)
		if err != nil {
			return nil, fmt.Errorf("call the tool %s: the arguments are not a JSON object: %w", tool.Name, err)
		}
		if query != "" {
			r.target += "?" + query
		}
	case http.MethodPost, http.MethodDelete:
		r.body = BodyOf(args).payload()
	default:
		return nil, fmt.Errorf("call the tool %s: its method is %q, and must be GET, POST or DELETE", tool.Name, r.method)
	}
	return r, nil
}

// Route is where a guild serves a tool: the name is split at its first hyphen, so
// writ-link-kinds is at /api/writ/link-kinds.
func Route(name string) (string, error) {
	group, action, split := strings.Cut(name, "-")
	parts := []string{group}
	if split {
		parts = append(parts, action)
	}
	route := "/api"
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("call the tool %q: the name makes no route", name)
		}
		route += "/" + url.PathEscape(part)
	}
	return route, nil
}

// queryOf writes the members of an object as a query, in their order: strings as they
// are, null not at all, everything else as its JSON text.
func queryOf(args json.RawMessage) (string, error) {
	values := json.NewDecoder(bytes.NewReader(args))
	if start, err := values.Token(); err != nil {
		return "", err
	} else if start != json.Delim('{') {
		return "", errors.New("it does not start with a brace")
	}
	var names []string
	given := map[string]string{}
	for values.More() {
		name, err := values.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := values.Decode(&value); err != nil {
			return "", err
		}
		key := name.(string) // the decoder takes nothing else in this place
		if _, again := given[key]; !again {
			names = append(names, key)
		}
		given[key] = string(value)
	}
	if _, err := values.Token(); err != nil {
		return "", err
	}
	if _, err := values.Token(); err != io.EOF {
		return "", errors.New("something follows the object")
	}
	return encode(names, given)
}

func encode(names []string, given map[string]string) (string, error) {
	var query []string
	for _, name := range names {
		value := given[name]
		switch {
		case value == "null":
			continue
		case value[0] == '"':
			if err := json.Unmarshal([]byte(value), &value); err != nil {
				return "", err
			}
		case value[0] == '{' || value[0] == '[':
			var short bytes.Buffer
			if err := json.Compact(&short, []byte(value)); err != nil {
				return "", err
			}
			value = short.String()
		}
		query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return strings.Join(query, "&"), nil
}

func textOf(body []byte) (string, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return "", nil
	}
	if body[0] == '"' {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return "", fmt.Errorf("the guild's answer is not JSON: %w", err)
		}
		return text, nil
	}
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return "", fmt.Errorf("the guild's answer is not JSON: %w", err)
	}
	return text.String(), nil
}
