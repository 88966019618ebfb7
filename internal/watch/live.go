package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/machine/signals"
)

// fps is the most frames a second. The library checks for changes that often, which costs even while nothing changes.
const fps = 12

// live shows the inboxes until a key or a signal ends it.
func live(o *options, l *Lookout) error {
	t, err := openTerminal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &Board{paint: layout.PaletteFor(t.out, o.color), verb: runVerb}
	colors := colorprofile.ANSI // the library would detect others
	if b.paint == (layout.Palette{}) {
		colors = colorprofile.ASCII
	}
	program := tea.NewProgram(b, tea.WithInput(t), tea.WithOutput(t.out), tea.WithFPS(fps),
		tea.WithoutSignalHandler(), tea.WithColorProfile(colors))
	t.guard(program)
	b.gather = func() { newWatch().gather(ctx, program.Send, l, &b.alike) }
	_, err = program.Run()
	cancel()
	ended := t.restore()
	b.acts.Wait() // a verb finishes what it began
	switch {
	case ended != nil:
		return ended
	case err != nil && !errors.Is(err, tea.ErrInterrupted):
		return fmt.Errorf("show the view: %w", err)
	}
	return nil
}

// inputEnded is the message that no more keys come.
type inputEnded struct{}

// Init is part of [tea.Model].
func (b *Board) Init() tea.Cmd {
	return func() tea.Msg { b.gather(); return nil }
}

// Update is part of [tea.Model].
func (b *Board) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		b.Width, b.Height = m.Width, m.Height
	case tea.KeyPressMsg:
		return b, b.Key(m.String())
	case update:
		return b, m(b)
	case inputEnded:
		return b, tea.Quit
	}
	return b, nil
}

// View is part of [tea.Model].
func (b *Board) View() tea.View {
	if text := strings.Join(Draw(b, b.paint), "\n"); text != b.drawn {
		b.drawn = text
		b.alike.Store(0)
	}
	b.alike.Add(1)
	v := tea.NewView(b.drawn)
	v.AltScreen = true
	v.DisableBracketedPasteMode = true
	return v
}

const (
	// pollEvery is how often all inboxes are looked at for what no event reports, such as whether processes live. The
	// rest after such a look is pollRest times as long as the look, up to pollMost. Without events, blindEvery applies.
	pollEvery, pollRest, pollMost = 5 * time.Second, 500, 30 * time.Second
	blindEvery                    = time.Second
	// tickEvery is how often the clock and the ages are drawn. While that changes nothing, most ticks are left out.
	tickEvery, maxLeftOut = time.Second, 15
	soon                  = 20 * time.Millisecond // how long an event waits for others of its commit
	// restShare bounds the share of time spent looking while inboxes change constantly. The rest after a look is
	// restShare times as long as the look.
	restShare = 2
)

// gather looks at the inboxes whenever something changes, and sends what it sees. A slow terminal delays only this.
func (w *watch) gather(ctx context.Context, send func(tea.Msg), l *Lookout, alike *atomic.Int64) {
	poll, tick := time.NewTicker(pollEvery), time.NewTicker(tickEvery)
	due := time.NewTimer(0)
	changed, all, rest, ticks := map[string]bool{}, true, time.Duration(0), int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-tick.C:
			if ticks++; ticks >= min(alike.Load(), maxLeftOut) || at.Second() == 0 { // the clock shows minutes
				ticks = 0
				send(update(func(b *Board) tea.Cmd { b.Now = at; return nil }))
			}
			continue
		case e := <-w.all.Events:
			if len(changed) == 0 {
				due.Reset(max(soon, rest))
			}
			changed[filepath.Dir(e.Name)] = true
			continue
		case <-w.all.Errors: // events were lost, so the next look is at all inboxes
			due.Reset(max(soon, rest))
			all = true
			continue
		case <-poll.C:
			all = true
		case <-due.C:
		}
		began := time.Now()
		found := l.Find(began)
		if found { // before reading, so that no change falls in between
			w.follow(l.Paths)
		}
		if all || found {
			changed = nil
		}
		p, news := l.Look(ctx, began, changed)
		if all || found {
			poll.Reset(w.pollAfter(time.Since(began)))
		}
		changed, all, rest = map[string]bool{}, false, time.Since(began)*restShare
		if news || found {
			send(update(func(b *Board) tea.Cmd { return b.Show(p) }))
		}
	}
}

// watch receives file events from the inboxes' folders.
type watch struct {
	all   *fsnotify.Watcher
	blind bool // some folder cannot be watched
}

func newWatch() *watch {
	all, err := fsnotify.NewWatcher()
	if err != nil {
		all = &fsnotify.Watcher{} // its channels stay silent
	}
	return &watch{all, err != nil}
}

func (w *watch) pollAfter(took time.Duration) time.Duration {
	if w.blind {
		return blindEvery
	}
	return max(pollEvery, min(pollRest*took, pollMost))
}

// follow watches the folders of these inboxes and no others.
func (w *watch) follow(inboxes []string) {
	if w.all.Events == nil {
		return
	}
	w.blind = false
	for _, dir := range w.all.WatchList() {
		if !slices.ContainsFunc(inboxes, func(path string) bool { return filepath.Dir(path) == dir }) {
			_ = w.all.Remove(dir) // it may be gone
		}
	}
	for _, path := range inboxes {
		w.blind = w.all.Add(filepath.Dir(path)) != nil || w.blind
	}
}

// terminal is the person's terminal. As a reader it notices the end of input, as the terminal library does not.
type terminal struct {
	*os.File
	out     *os.File
	before  *term.State
	taken   *signals.Caught
	program *tea.Program
	over    chan struct{}
	ended   sync.Once
}

func openTerminal() (*terminal, error) {
	in, out := os.Stdin, os.Stdout
	switch {
	case !cli.IsTerminal(out) || !cli.IsTerminal(in):
		return nil, errors.New("a live view needs a terminal to show itself on and to read keys from: --once prints the view once")
	case os.Getenv("TERM") == "dumb":
		return nil, errors.New("TERM is dumb: such a terminal shows no live view, and --once prints the view once")
	}
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return &terminal{File: in, out: out, before: before, taken: signals.Catch(), over: make(chan struct{})}, nil
}

// Read tells the program when input ends.
func (t *terminal) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) {
		t.ended.Do(func() { go t.program.Send(inputEnded{}) })
		return n, io.EOF
	}
	return n, err
}

const blocked = 2 * time.Second // how long a terminal that takes no output may delay the end

// guard ends the program in order when a signal comes. If the terminal takes no output meanwhile, guard restores the
// terminal's mode and ends this process.
func (t *terminal) guard(p *tea.Program) {
	t.program = p
	go func() {
		select {
		case <-t.over:
			return
		case <-t.taken.First():
		}
		go p.Quit()
		select {
		case <-t.over:
			return
		case <-t.taken.Second():
		case <-time.After(blocked):
		}
		_ = term.Restore(int(t.File.Fd()), t.before)
		sig, _ := t.taken.Signal()
		os.Exit(128 + int(sig))
	}()
}

// restore is called once the program has ended. It returns the signal that ended it.
func (t *terminal) restore() error {
	close(t.over)
	_ = term.Restore(int(t.File.Fd()), t.before)
	sig, _ := t.taken.Signal()
	t.taken.Stop()
	if sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return nil
}

// orphaned reports whether no shell could continue this process after a stop. Then ^Z has no effect.
func orphaned() bool {
	own, err := unix.Getsid(0)
	parents, errParent := unix.Getsid(os.Getppid())
	return err != nil || errParent != nil || own != parents
}
