package watching

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/watching/act"
	"heartbeat/internal/watching/board"
	"heartbeat/internal/watching/draw"
	"heartbeat/internal/watching/finder"
	"heartbeat/internal/watching/look"
	"heartbeat/internal/watching/page"
)

// fps is how often the screen is drawn at most. It is looked at that often, too, so a
// higher number costs more while nothing changes.
const fps = 20

// live shows the inboxes until a key or a signal ends it.
func live(o *page.Flags, f *finder.Finder, s cli.Streams) error {
	t, err := openTerminal(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	paint := colour.For(s.Out, o.Color)
	d := &display{board: &board.Board{}, paint: paint, ctx: ctx, acts: &acts{}}
	program := tea.NewProgram(d, tea.WithInput(t), tea.WithOutput(t.out), tea.WithFPS(fps),
		tea.WithoutSignalHandler(), tea.WithColorProfile(profile(paint)))
	d.program = program
	t.guard(program)
	go func() {
		defer t.panicked()
		gather(ctx, program, f)
	}()
	_, err = program.Run()
	cancel()
	ended := t.restore()
	d.acts.wait()
	switch {
	case ended != nil:
		return ended
	case err != nil && !errors.Is(err, tea.ErrInterrupted):
		return fmt.Errorf("show the view: %w", err)
	}
	return nil
}

// profile is for a library that would otherwise find out by itself, and differently.
func profile(paint colour.Palette) colorprofile.Profile {
	if paint == (colour.Palette{}) {
		return colorprofile.ASCII
	}
	return colorprofile.ANSI
}

// display is the board in the terminal library's terms.
type display struct {
	board   *board.Board
	paint   colour.Palette
	program *tea.Program
	ctx     context.Context
	acts    *acts
}

// The messages besides keys and sizes.
type (
	looked struct{ look.Picture }
	ticked struct{ time.Time }
	loaded struct {
		path  string
		items []look.Item
		notes []string
		err   error
	}
	found struct {
		of   look.Item
		life look.Life
		err  error
	}
	done struct {
		said string
		err  error
	}
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
	case looked:
		return d, d.do(d.board.Look(m.Picture))
	case ticked:
		d.board.Tick(m.Time)
	case loaded:
		return d, d.do(d.board.Loaded(m.path, m.items, m.notes, m.err))
	case found:
		d.board.Found(m.of, m.life, m.err)
	case done:
		d.board.Done(m.said, m.err)
	case inputEnded:
		return d, tea.Quit
	}
	return d, nil
}

// View is part of [tea.Model].
func (d *display) View() tea.View {
	v := tea.NewView(strings.Join(draw.Draw(d.board, d.paint), "\n"))
	v.AltScreen = true
	v.DisableBracketedPasteMode = true // nothing is pasted here
	return v
}

// do has an effect of the board done.
func (d *display) do(e board.Effect) tea.Cmd {
	switch e := e.(type) {
	case board.Quit:
		return tea.Quit
	case board.Suspend:
		stopSelf()
	case board.Load:
		return func() tea.Msg {
			items, notes, err := look.Entries(e.Inbox)
			return loaded{e.Inbox.Path(), items, notes, err}
		}
	case board.Find:
		return func() tea.Msg {
			life, err := look.LifeOf(e.Path, e.Item)
			return found{e.Item, life, err}
		}
	case board.Act:
		d.acts.add()
		return func() tea.Msg {
			defer d.acts.done()
			said, err := act.Run(context.WithoutCancel(d.ctx), e.Args)
			return done{said, err}
		}
	}
	return nil
}
