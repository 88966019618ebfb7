package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
)

type sendFlags struct {
	inboxFlags
	file   string
	id     string
	meta   []string
	settle span
}

func sendVerb() verb {
	return verb{
		name:  "send",
		args:  "[TEXT | -]",
		short: "append one entry to the inbox",
		long: `Append one entry to the inbox and print its id. The text is the argument, the
content of --file, or stdin (with -, or without a TEXT). Nothing of it shows in
the process list when it comes from stdin or a file. The entry is on the disk
when send returns.

With --id, sending again is safe: an id that is queued, in flight or answered is
not appended a second time.

Exit status: 0 the entry is (or was) in the inbox, 1 it is not.`,
		example: `heartbeat-stop send --inbox work/inbox.jsonl "summarise the open issues"
git log -1 -p | heartbeat-stop send --inbox work/inbox.jsonl --id "review-$SHA" --meta branch=main -`,
		build: func() (*pflag.FlagSet, action) {
			var o sendFlags
			f := newFlags("send")
			o.settle = span(defaultSettle)
			o.add(f)
			f.StringVar(&o.file, "file", "", "read the text from this file")
			f.StringVar(&o.id, "id", "", "name the entry, and append it only once")
			f.StringArrayVar(&o.meta, "meta", nil, "metadata `key=value`, kept with the result (may be repeated)")
			f.Var(&o.settle, "settle", "how long a last line without newline must stand still before it gets one")
			return f, func(args []string, s streams) error {
				if f.Changed("id") && o.id == "" {
					return usageError{errors.New("--id is empty: name the entry, or leave the flag out")}
				}
				return o.run(args, s)
			}
		},
	}
}

func (o *sendFlags) run(args []string, s streams) error {
	text, err := o.text(args, s.in)
	if err != nil {
		return err
	}
	meta, err := o.metadata()
	if err != nil {
		return err
	}
	box, err := o.open()
	if err != nil {
		return err
	}
	receipt, err := box.Append(context.Background(), inbox.Message{ID: o.id, Text: text, Metadata: meta}, time.Duration(o.settle))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for _, w := range receipt.Warnings {
		s.note("%s", w)
	}
	if !receipt.Appended {
		s.note("the entry %q is %s already: nothing was appended", receipt.ID, receipt.Found)
	}
	return o.print(s, receipt, receipt.ID)
}

func (o *sendFlags) text(args []string, stdin *os.File) (string, error) {
	switch {
	case len(args) > 1:
		return "", usageError{fmt.Errorf("%d texts: quote the text, or send it on stdin", len(args))}
	case len(args) == 1 && o.file != "":
		return "", usageError{errors.New("both a TEXT and --file: one of them is enough")}
	case len(args) == 1 && args[0] != "-":
		return args[0], nil
	case o.file != "":
		b, err := os.ReadFile(o.file)
		if err != nil {
			return "", fmt.Errorf("send: %w", err)
		}
		return string(b), nil
	}
	if _, err := unix.IoctlGetTermios(int(stdin.Fd()), termiosRequest); err == nil && len(args) == 0 {
		return "", usageError{errors.New("no text: give it as TEXT, with --file, or on stdin")}
	}
	b, err := io.ReadAll(io.LimitReader(stdin, inbox.MaxLine+1))
	if err != nil {
		return "", fmt.Errorf("send: read stdin: %w", err)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

func (o *sendFlags) metadata() (map[string]string, error) {
	if len(o.meta) == 0 {
		return nil, nil
	}
	meta := make(map[string]string, len(o.meta))
	for _, kv := range o.meta {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return nil, usageError{fmt.Errorf("--meta %q: it takes key=value", kv)}
		}
		meta[key] = value
	}
	return meta, nil
}
