package watch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/orchestrate"
)

func at(path string, change ...func(*Inbox)) Inbox {
	i := Inbox{Facts: see.Facts{Inbox: path, Queue: see.Queue{Exists: true}}, Seen: 1}
	for _, c := range change {
		c(&i)
	}
	return i
}

// showing is a board of these inboxes in a terminal of the usual size.
func showing(all ...Inbox) *Board {
	b := &Board{Width: 80, Height: 24}
	b.Show(Picture{At: time.Now(), Inboxes: all})
	return b
}

// opened is a board with the page of the inbox a open, and these items on it.
func opened(t *testing.T, a Inbox, items ...Item) *Board {
	t.Helper()
	b := showing(a)
	require.NotNil(t, b.Key("enter"), "the page is to be read")
	assert.Equal(t, a.Path(), b.Page.Path)
	assert.Nil(t, b.loaded(a.Path(), items, nil, nil))
	return b
}

// echo is a verb whose output is its command line.
func echo(_ context.Context, args []string) (string, error) { return strings.Join(args, " "), nil }

// does what the terminal library does with a command.
func does(t *testing.T, b *Board, cmd tea.Cmd) {
	t.Helper()
	require.NotNil(t, cmd)
	_, next := b.Update(cmd())
	assert.Nil(t, next)
}

func TestChoosing(t *testing.T) {
	b := showing(at("/a/inbox.jsonl"), at("/b/inbox.jsonl"), at("/c/inbox.jsonl"))
	for _, step := range []struct{ key, chosen string }{
		{"down", "/b"}, {"j", "/c"}, {"down", "/c"}, {"home", "/a"}, {"up", "/a"}, {"end", "/c"}, {"k", "/b"}, {"pgdown", "/c"}, {"pgup", "/a"}, {"z", "/a"},
	} {
		assert.Nil(t, b.Key(step.key))
		assert.Equal(t, step.chosen+"/inbox.jsonl", b.Selected, step.key)
	}
}

// What is chosen stays chosen while inboxes come and go.
func TestTheChosenInboxStays(t *testing.T) {
	b := showing(at("/a/inbox.jsonl"), at("/b/inbox.jsonl"))
	b.Key("down")
	b.Show(Picture{Inboxes: []Inbox{at("/a/inbox.jsonl"), at("/aa/inbox.jsonl"), at("/b/inbox.jsonl")}})
	assert.Equal(t, 2, b.Index())
	b.Show(Picture{Inboxes: []Inbox{at("/a/inbox.jsonl")}})
	assert.Equal(t, "/a/inbox.jsonl", b.Selected)
	b.Show(Picture{})
	assert.Empty(t, b.Selected)
	for _, key := range []string{"up", "down", "enter", "p", "r", "c", "u", "a", "x", "esc", "?", "x"} {
		assert.Nil(t, b.Key(key), "%s, with no inbox", key)
	}
}

func TestEndsAndStops(t *testing.T) {
	b := showing(at("/a/inbox.jsonl"))
	assert.Equal(t, tea.QuitMsg{}, b.Key("q")())
	b.Key("p")
	assert.Equal(t, tea.QuitMsg{}, b.Key("ctrl+c")(), "also while something is asked")
	if cmd := b.Key("ctrl+z"); orphaned() {
		assert.Nil(t, cmd)
	} else {
		assert.Equal(t, tea.SuspendMsg{}, cmd())
	}
}

var (
	paused = func(i *Inbox) { i.Paused = &inbox.Pause{} }
	held   = func(i *Inbox) {
		i.Runs = []see.Run{{Run: "r1", Dir: "/runs/r1", Wait: orchestrate.Wait{State: orchestrate.Asking, Effect: "E1", Text: "ship it?"}}}
	}
	twoHeld = func(i *Inbox) {
		held(i)
		i.Runs = append(i.Runs, see.Run{Dir: "/runs/r2", Wait: orchestrate.Wait{State: orchestrate.Asking, Effect: "E2"}})
	}
	asking = func(i *Inbox) {
		i.Sessions = []see.Session{{Session: inbox.Session{ID: "s1", Asks: &inbox.Question{Kind: "permission_prompt"}}, Life: machine.Alive}}
	}
	waits    = Item{Kind: Waiting, ID: "-job", EntryID: "abc", Start: 17}
	inFlight = Item{Kind: InFlight, ID: "job", EntryID: "abc"}
	letter   = Item{Kind: DeadLetter, ID: "job", EntryID: "abc", Letter: "0123456789ab"}
	question = Item{Kind: Question, ID: "E2", Effect: "E2", RunDir: "/runs/r2", Text: "really?"}
)

// TestKeysRunVerbs holds that a key asks first, and that a yes runs the verb.
func TestKeysRunVerbs(t *testing.T) {
	for name, c := range map[string]struct {
		inbox Inbox
		item  *Item
		key   string
		asked string
		args  string
	}{
		"pause":            {at("/a/inbox.jsonl"), nil, "p", "pause delivery in a?", "pause --inbox /a/inbox.jsonl"},
		"resume":           {at("/a/inbox.jsonl", paused), nil, "r", "resume delivery in a?", "resume --inbox /a/inbox.jsonl"},
		"cancel":           {at("/a/inbox.jsonl"), &waits, "c", "cancel the entry -job?", "cancel --inbox /a/inbox.jsonl -- abc@17"},
		"cancel later":     {at("/a/inbox.jsonl"), &Item{Kind: Scheduled, EntryID: "abc"}, "c", "cancel the entry abc?", "cancel --inbox /a/inbox.jsonl -- abc"},
		"cancel in flight": {at("/a/inbox.jsonl"), &inFlight, "c", "cancel the entry job?", "cancel --inbox /a/inbox.jsonl -- abc"},
		"requeue":          {at("/a/inbox.jsonl"), &letter, "u", "put job back", "dead-letter requeue --inbox /a/inbox.jsonl -- 0123456789ab"},
		"approve":          {at("/a/inbox.jsonl", held), nil, "a", `approve "ship it?"? (this runs the code that the run /runs/r1 names)`, "breakpoint approve --inbox /a/inbox.jsonl --run /runs/r1 -- E1"},
		"reject":           {at("/a/inbox.jsonl", held), nil, "x", "reject", "breakpoint reject --inbox /a/inbox.jsonl --run /runs/r1 -- E1"},
		"approve chosen":   {at("/a/inbox.jsonl", twoHeld), &question, "a", `approve "really?"?`, "breakpoint approve --inbox /a/inbox.jsonl --run /runs/r2 -- E2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := showing(c.inbox)
			if c.item != nil {
				b = opened(t, c.inbox, *c.item)
			}
			assert.Nil(t, b.Key(c.key))
			require.NotNil(t, b.Asking, b.Said)
			assert.Contains(t, b.Asking.Question, c.asked)
			assert.Nil(t, b.Key(c.key), "the same key once more is a no")
			assert.Nil(t, b.Asking)
			assert.Equal(t, "nothing was done", b.Said)
			b.Key(c.key)
			b.verb = echo
			run := b.Key("y")
			assert.NotEmpty(t, b.Doing)
			b.Key("p")
			assert.Nil(t, b.Asking, "one thing at a time")
			does(t, b, run)
			assert.Empty(t, b.Doing)
			assert.Equal(t, c.args, b.Said)
		})
	}
}

// TestRefusals holds that nothing is asked that is about nothing, and that it says why.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		inbox Inbox
		item  *Item
		key   string
		said  string
	}{
		"cancel nothing":       {at("/a/inbox.jsonl"), nil, "c", "choose an entry that waits"},
		"cancel a long line":   {at("/a/inbox.jsonl"), &Item{Kind: Waiting}, "c", "a line that is too long to be named here"},
		"requeue what waits":   {at("/a/inbox.jsonl"), &waits, "u", "choose a dead letter"},
		"approve nothing":      {at("/a/inbox.jsonl"), nil, "a", "0 questions wait in a"},
		"approve one of two":   {at("/a/inbox.jsonl", twoHeld), nil, "a", "2 questions wait in a: open the inbox and choose one"},
		"approve of a session": {at("/a/inbox.jsonl", asking), nil, "a", "a session asks that: answer it at the session's own terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			b := showing(c.inbox)
			if c.item != nil {
				b = opened(t, c.inbox, *c.item)
			}
			assert.Nil(t, b.Key(c.key))
			assert.Nil(t, b.Asking)
			assert.Contains(t, b.Said, c.said)
			assert.True(t, b.Failed)
		})
	}
}

func TestFailuresAreSaid(t *testing.T) {
	b := showing(at("/a/inbox.jsonl"))
	b.verb = func(context.Context, []string) (string, error) { return "", errors.New("the disk is full") }
	b.Key("p")
	does(t, b, b.Key("y"))
	assert.Equal(t, "the disk is full", b.Said)
	assert.True(t, b.Failed)
}

// A page is read again when its inbox changed, and only then.
func TestAPageFollowsItsInbox(t *testing.T) {
	a := at("/a/inbox.jsonl")
	b := opened(t, a, waits, inFlight)
	b.Key("down")
	assert.Nil(t, b.Show(Picture{Inboxes: []Inbox{a}}))
	a.Seen++
	assert.NotNil(t, b.Show(Picture{Inboxes: []Inbox{a}}))
	a.Seen++
	assert.Nil(t, b.Show(Picture{Inboxes: []Inbox{a}}), "one reading at a time")
	assert.NotNil(t, b.loaded(a.Path(), []Item{letter, waits, inFlight}, nil, nil), "it changed meanwhile")
	item, _ := b.Page.Item()
	assert.Equal(t, inFlight, item, "what is chosen stays chosen")
	b.loaded("/b/inbox.jsonl", nil, nil, nil)
	assert.Len(t, b.Page.Items, 3, "of another inbox")

	b.verb = echo
	late := b.Key("enter")
	b.Key("esc")
	find := b.Key("enter")
	does(t, b, late)
	assert.False(t, b.Life.Loaded, "that was asked for another view")
	does(t, b, find)
	assert.Equal(t, inFlight, b.Life.Item)
	assert.Equal(t, "log --inbox "+a.Path()+" -- "+inFlight.ID, b.Life.Events)

	b.Show(Picture{})
	assert.Nil(t, b.Page)
	assert.Nil(t, b.Life)
	assert.Equal(t, "/a/inbox.jsonl is gone", b.Said)
}

func TestBack(t *testing.T) {
	b := opened(t, at("/a/inbox.jsonl"), waits)
	b.Key("enter")
	b.Key("esc")
	assert.Nil(t, b.Life)
	assert.NotNil(t, b.Page)
	b.Key("left")
	assert.Nil(t, b.Page)
	b.Key("?")
	assert.True(t, b.Help)
	b.Key("q")
	assert.False(t, b.Help, "any key closes the help, and does nothing else")
}

func TestShortNames(t *testing.T) {
	for path, name := range map[string]string{
		"/srv/mail/inbox.jsonl": "mail", "/srv/mail/queue/inbox.jsonl": "mail/queue", "/srv/mail/jobs.jsonl": "mail/jobs.jsonl",
		"/inbox.jsonl": "/", "/queue/inbox.jsonl": "queue", "/a\x1b[2J/inbox.jsonl": `a\u001b[2J`,
	} {
		assert.Equal(t, name, short(path, 0), path)
	}
}

// Inboxes whose short names are the same are told apart by as many folders as that takes.
func TestUniqueNames(t *testing.T) {
	p := Picture{Inboxes: []Inbox{at("/srv/a/q/inbox.jsonl"), at("/srv/b/q/inbox.jsonl"), at("/x/b/q/inbox.jsonl"), at("/srv/c/inbox.jsonl")}}
	name := names(p)
	var all []string
	for _, now := range p.Inboxes {
		all = append(all, name(now.Path()))
	}
	assert.Equal(t, []string{"a/q", "srv/b/q", "x/b/q", "c"}, all)

	b := Board{Picture: p, Selected: "/x/b/q/inbox.jsonl"}
	b.Key("p")
	assert.Equal(t, "pause delivery in x/b/q?", b.Asking.Question, "as the list calls it")
	assert.Equal(t, "heartbeat pause in x/b/q", b.Asking.Doing)
}

// TestAQuestionEndsWithItsSession holds that nobody is asked to answer a session whose process is gone.
func TestAQuestionEndsWithItsSession(t *testing.T) {
	now := at("/a/inbox.jsonl", asking)
	require.Len(t, Asked(now), 1)
	now.Sessions[0].Life = machine.Gone
	assert.Empty(t, Asked(now))
}
