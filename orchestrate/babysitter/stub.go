package babysitter

import (
	"context"
	"time"
)

const versionTimeout = 5 * time.Second

type request struct {
	name    string
	timeout time.Duration
}

type result struct{ stdout []byte }

func (c *CLI) ask(context.Context, request) (result, error)      { panic("todo") }
func (c *CLI) silent(doing string, out result, kind error) error { panic("todo") }
func (c *CLI) command() []string                                 { panic("todo") }
