package guild

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"heartbeat/internal/hosting/config"
	"net/http"
	"net/url"
)

// MaxToolAnswer is the largest answer to a tool call, in bytes.
const MaxToolAnswer = 64 << 20

// Tool calls a tool and returns its answer as text: a JSON string as its contents, other JSON indented by
// two blanks a level, and an empty answer as "". args is a JSON object, or empty for none.
//
// The error's text is for the agent. The error is a [*Refused] (at once, whatever the status), an
// [*Unreachable] (after 60 s of attempts that sent nothing), an [*Unanswered], or says what is
// wrong with the call or its answer.
func (c *Client) Tool(ctx context.Context, tool config.Tool, args json.RawMessage) (string, error) {
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
			switch repeatable := !failure.sent || tool.Idempotent || tool.Method == http.MethodGet; {
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

func toolRequest(tool config.Tool, args json.RawMessage) (*request, error) {
	r := &request{method: tool.Method, target: tool.Route()}
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if r.method != http.MethodGet {
		r.body = BodyOf(args)
		return r, nil
	}
	query, err := queryOf(args)
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: the arguments are not a JSON object: %w", tool.Name, err)
	}
	if query != "" {
		r.target += "?" + query
	}
	return r, nil
}

// queryOf writes an object's members as a query: strings as they are, null not at all, everything
// else as JSON.
func queryOf(args json.RawMessage) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return "", err
	}
	query := url.Values{}
	for name, value := range members {
		var text string
		var short bytes.Buffer
		switch {
		case string(value) == "null":
			continue
		case json.Unmarshal(value, &text) == nil:
		case json.Compact(&short, value) == nil: // it is valid
			text = short.String()
		}
		query.Set(name, text)
	}
	return query.Encode(), nil
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
