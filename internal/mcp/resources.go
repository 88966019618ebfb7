package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	statusURI = "heartbeat://status"
	entryURI  = "heartbeat://entry/"
)

func (s *server) addResources(m *sdk.Server) {
	m.AddResource(&sdk.Resource{URI: statusURI, Name: "status", MIMEType: "application/json",
		Description: "what waits, what is in flight, and why nothing moves"},
		func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			a, err := s.verbs.run(ctx, "status")
			return contents(r.Params.URI, a, err)
		})
	m.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: entryURI + "{id}", Name: "entry", MIMEType: "application/json",
		Description: "the life of an entry: what happened to it, the oldest first"},
		func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id, err := url.PathUnescape(strings.TrimPrefix(r.Params.URI, entryURI))
			if err != nil || id == "" {
				return nil, sdk.ResourceNotFoundError(r.Params.URI)
			}
			a, err := s.verbs.run(ctx, "log", "--", id)
			return contents(r.Params.URI, a, err)
		})
}

func contents(uri string, a answer, err error) (*sdk.ReadResourceResult, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a.Lines)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
}
