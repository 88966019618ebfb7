package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
)

// fps is the most frames a second. The library checks for changes that often, so a higher number costs more even
// while nothing changes.
const fps = 20

// live shows the inboxes until a key or a signal ends it.
func live(o *options, l *Lookout) error {
	t, err := openTerminal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	paint := layout.PaletteFor(t.out, o.color)
	d := &display{paint: paint, verbs: o.verbs}
	program := tea.NewProgram(d, tea.WithInput(t), tea.WithOutput(t.out), tea.WithFPS(fps),
		tea.WithoutSignalHandler(), tea.WithColorProfile(profile(paint)))
	t.guard(program)
	go func() {
		defer t.panicked()
		gather(ctx, program, l)
	}()
	_, err = program.Run()
	cancel()
	ended := t.restore()
	d.acts.Wait() // a verb finishes what it began
	switch {
	case ended != nil:
		return ended
	case err != nil && !errors.Is(err, tea.ErrInterrupted):
		return fmt.Errorf("show the view: %w", err)
	}
	return nil
}

// profile sets the library's colors, which it would otherwise detect differently.
func profile(paint layout.Palette) colorprofile.Profile {
	if paint == (layout.Palette{}) {
		return colorprofile.ASCII
	}
	return colorprofile.ANSI
}

// display is the board in the terminal library's terms.
type display struct {
	board Board
	paint layout.Palette
	verbs cli.Verbs
	acts  sync.WaitGroup // actions in progress
}

// The messages besides keys and sizes.
type (
	// told tells the board something.
	told       func(*Board) Effect
	inputEnded struct{}
)

// Init is part of [tea.Model].
func (d *display) Init() tea.Cmd { return nil }

// Update is part of [tea.Model].
func (d *display) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		d.board.Width, d.board.Height = m.Width, m.Height
	case tea.KeyPressMsg:
		return d, d.do(d.board.Key(m.String()))
	case told:
		return d, d.do(m(&d.board))
	case inputEnded:
		return d, tea.Quit
	}
	return d, nil
}

// View is part of [tea.Model].
func (d *display) View() tea.View {
	v := tea.NewView(strings.Join(Draw(&d.board, d.paint), "\n"))
	v.AltScreen = true
	v.DisableBracketedPasteMode = true // nothing is pasted here
	return v
}

// do carries out an effect of the board.
func (d *display) do(e Effect) tea.Cmd {
	switch e := e.(type) {
	case Quit:
		return tea.Quit
	case Suspend:
		if !orphaned() {
			return tea.Suspend
		}
	case Load:
		return func() tea.Msg {
			items, notes, err := Entries(e.Inbox)
			return told(func(b *Board) Effect { return b.Loaded(e.Inbox.Path(), items, notes, err) })
		}
	case Find:
		return func() tea.Msg {
			events, err := runVerb(context.Background(), d.verbs, e.Inbox, e.Args)
			return told(func(b *Board) Effect { b.Found(e.Item, events, err); return nil })
		}
	case Act:
		d.acts.Add(1)
		return func() tea.Msg {
			defer d.acts.Done()
			said, err := runVerb(context.Background(), d.verbs, e.Inbox, e.Args)
			return told(func(b *Board) Effect { b.Done(oneLine(said), err); return nil })
		}
	}
	return nil
}
