package page

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/budget"
	"heartbeat/internal/cli"
)

// Send is a message for agents.
type Send struct {
	OnStream
	Subject string
	// Text is the message, or "-" where it comes from stdin. File replaces both.
	Text, File string
	ID         string
	Meta       map[string]any
	Limits     budget.Limits
	Wait, Raw  bool
	Timeout    time.Duration // 0: for ever
	Implied    bool          // the text comes from stdin since there was none
}

func sendVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "send",
		Args:  "[TEXT | -]",
		Short: "send a message to the agents, and wait for the answer if asked",
		Long: `Send one message and print its id. The text is the argument, the content of
--file, or stdin (with -, or without a TEXT). The message is on the server's disk
when send returns. It goes to one agent that takes its subject.

With --id, sending again is safe: an id that was answered is not sent again, and
neither is one that the server knows from within its duplicate window. Whoever
sends a text twice under one id gets one answer, also after that window: the first
one counts. An id whose dead letter is kept is refused.

With --wait the reply is printed in place of the id, once the message was
answered. Waiting holds nothing up and may be given up: the message stays where it
is, and waiting for it goes on with the same --id.

A message that is larger than the server takes is refused, with both sizes.

Exit status: 0 the message is (or was) in the stream, with --wait: it was
answered; 1 it is not, or, with --wait, somebody deleted it; with --wait: 3 it
became a dead letter, 124 the timeout passed, and 128+n a signal ended the
waiting, the message stays where it is.`,
		Example: `heartbeat-nats send --subject work.review "review the last commit"
git log -1 -p | heartbeat-nats send --subject work.review --id "review-$SHA" -
heartbeat-nats send --subject work.review --wait --timeout 10m "is it ready?"`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Send
			var meta []string
			var timeout cli.Span
			f := cli.NewFlags("send")
			o.addStream(f)
			f.StringVar(&o.Subject, "subject", "", "`subject` that an agent takes, such as work.review")
			f.StringVar(&o.File, "file", "", "read the text from this `file`")
			f.StringVar(&o.ID, "id", "", "give the message this `id`, and send it only once")
			f.StringArrayVar(&meta, "meta", nil, "metadata `key=value`, kept with the entry's result (may be repeated)")
			cli.AddEntryLimits(f, &o.Limits)
			f.BoolVar(&o.Wait, "wait", false, "wait for the answer, and print it")
			f.Var(&timeout, "timeout", "give up waiting after this time (seconds or a duration; 0: never)")
			addRaw(f, &o.Raw)
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				o.Timeout = time.Duration(timeout)
				err := o.check(f, args)
				if err == nil {
					o.Meta, err = metadata(meta)
				}
				if err != nil {
					return cli.Usage(err)
				}
				return do.Send(&o, s)
			}
		},
	}
}

// reserved are the members of an entry that are no metadata.
const reserved = " id prompt sent_at not_before expires_at limits nats "

func metadata(given []string) (map[string]any, error) {
	all := make(map[string]any, len(given))
	for _, kv := range given {
		key, value, found := strings.Cut(kv, "=")
		switch {
		case !found || key == "":
			return nil, fmt.Errorf("--meta %q: it takes key=value", kv)
		case strings.Contains(reserved, " "+key+" "):
			return nil, fmt.Errorf("--meta %q: the name %q is taken", kv, key)
		}
		all[key] = value
	}
	return all, nil
}

func (o *Send) check(f *pflag.FlagSet, args []string) error {
	switch {
	case o.Subject == "":
		return errors.New("no subject: name it with --subject, such as work.review")
	case !isSubject(o.Subject):
		return fmt.Errorf("--subject is %q: a message has one subject, of words with dots between them, without wildcards and blanks", o.Subject)
	case f.Changed("id") && o.ID == "":
		return errors.New("--id is empty: name the message, or leave the flag out")
	case f.Changed("file") && o.File == "":
		return errors.New("--file is empty: name a file, or leave the flag out")
	case f.Changed("timeout") && !o.Wait:
		return errors.New("--timeout is about waiting: add --wait")
	case o.Raw && !o.Wait:
		return errors.New("--raw is about the reply that is waited for: add --wait")
	case len(args) > 1:
		return fmt.Errorf("%d texts: quote the text, or send it on stdin", len(args))
	case len(args) == 1 && o.File != "":
		return errors.New("both a TEXT and --file: one of them is enough")
	}
	o.Text, o.Implied = "-", len(args) == 0
	if len(args) == 1 {
		o.Text = args[0]
	}
	return o.OnStream.check(f)
}

// isSubject reports whether messages can be published there.
func isSubject(s string) bool {
	return !strings.ContainsAny(s, " \t\r\n\x00*>") && !strings.HasPrefix(s, ".") && !strings.HasSuffix(s, ".") && !strings.Contains(s, "..")
}
