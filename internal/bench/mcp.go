package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/inbox"
)

const (
	maxToolsStart  = 3.0
	maxEnqueueOver = 1.2
)

// measureTools compares the tools' server with what there is without it: its start with that
// of a Go program that does nothing, and an entry sent over stdio with the library's call.
func measureTools(b *bench) (table, error) {
	r, err := b.runner()
	if err != nil {
		return table{}, err
	}
	defer r.close()
	dir, err := b.folder("mcp")
	if err != nil {
		return table{}, err
	}
	var start, empty sample
	for range b.plan.pairs {
		_, took, err := r.run(nil, b.programs.mcp, "--inbox", filepath.Join(dir, "inbox.jsonl"))
		if err != nil {
			return table{}, err
		}
		_, floor, err := r.run(nil, b.programs.empty)
		if err != nil {
			return table{}, err
		}
		start, empty = append(start, took), append(empty, floor)
	}
	over, call, err := b.enqueues()
	if err != nil {
		return table{}, err
	}
	t := table{
		title: "Tools",
		how: "`heartbeat-mcp --inbox PATH` with nothing on stdin, which makes all of an agent's tools and ends, in turn with a Go program that prints one line,\n" +
			"both from start to end; and the tool enqueue of a producer over stdin\n" +
			"and stdout in turn with the library's Append to another inbox, on the same file system. Ratios are the medians of each run's to the one beside it.",
		header: []string{"", "runs", "median", "min", "ratio"},
	}
	started, sent := start.over(empty), over.over(call)
	t.add("heartbeat-mcp", fmt.Sprint(len(start)), ms(start.median()), ms(start.min()), ratio(started))
	t.add("an empty Go program", fmt.Sprint(len(empty)), ms(empty.median()), ms(empty.min()), ratio(1))
	t.add("enqueue over stdio", fmt.Sprint(len(over)), ms(over.median()), ms(over.min()), ratio(sent))
	t.add("inbox.Append", fmt.Sprint(len(call)), ms(call.median()), ms(call.min()), ratio(1))
	t.result = fmt.Sprintf("Targets: a start of at most %.1f: %s; enqueue of at most %.1f: %s.", maxToolsStart, met(started <= maxToolsStart), maxEnqueueOver, met(sent <= maxEnqueueOver))
	return t, nil
}

// enqueues sends entries by the tool and by the library, in turn.
func (b *bench) enqueues() (over, call sample, err error) {
	byTool, err := b.folder("mcp-tool")
	if err != nil {
		return nil, nil, err
	}
	byCall, err := b.folder("mcp-call")
	if err != nil {
		return nil, nil, err
	}
	box, err := inbox.Open(filepath.Join(byCall, "inbox.jsonl"), inbox.Options{})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	server := exec.Command(b.programs.mcp, "--inbox", filepath.Join(byTool, "inbox.jsonl"), "--role", "producer")
	c, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.Close() }()
	for n := range b.plan.pairs {
		text := fmt.Sprintf("entry %d", n)
		began := time.Now()
		answer, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "enqueue", Arguments: map[string]any{"prompt": text}})
		took := time.Since(began)
		if err == nil && answer.IsError {
			err = fmt.Errorf("enqueue: %v", answer.Content)
		}
		if err != nil {
			return nil, nil, err
		}
		began = time.Now()
		if _, err := box.Append(ctx, inbox.Message{Text: text}, time.Second); err != nil {
			return nil, nil, err
		}
		over, call = append(over, took), append(call, time.Since(began))
	}
	return over, call, nil
}
