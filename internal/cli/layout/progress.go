package layout

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/words"
)

const (
	quiet     = time.Second            // a verb that ends sooner shows nothing
	drawEvery = 200 * time.Millisecond // how often the line is drawn
)

// inBackground stands for the width while another process group has the terminal: nothing is drawn over its output.
const inBackground = -1

const clearLine = "\r\x1b[K"

// ProgressLine is a redrawn terminal line, until [ProgressLine.Stop]. Its methods are concurrent, and do nothing on nil.
type ProgressLine struct {
	mu       sync.Mutex
	terminal io.Writer
	width    func() int // 0 if unknown, or inBackground
	doing    string
	from     time.Time // nothing is drawn earlier
	began    time.Time
	shown    string // what the terminal shows now, empty for nothing
	stop     func()
	stopping chan struct{} // closed by stop
	stopped  sync.WaitGroup
}

// StartLine begins a line that shows doing and for how long. It returns nil, which shows nothing, off a terminal.
func StartLine(out io.Writer, doing string) *ProgressLine {
	f := Terminal(out)
	if f == nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	ticker := time.NewTicker(drawEvery)
	l := newLine(f, doing, time.Now(), func() int {
		if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
			return inBackground
		}
		width, _, _ := term.GetSize(int(f.Fd()))
		return width
	})
	l.run(ticker.C, ticker.Stop)
	return l
}

func newLine(terminal io.Writer, doing string, began time.Time, width func() int) *ProgressLine {
	l := &ProgressLine{terminal: terminal, doing: words.Line(doing), from: began.Add(quiet), began: began, width: width, stopping: make(chan struct{})}
	l.stop = sync.OnceFunc(func() { close(l.stopping) })
	return l
}

func (l *ProgressLine) run(ticks <-chan time.Time, end func()) {
	l.stopped.Go(func() {
		defer end()
		for {
			select {
			case now := <-ticks:
				l.draw(now)
			case <-l.stopping:
				return
			}
		}
	})
}

// Say sets what is being done, and since when. An empty text hides the line.
func (l *ProgressLine) Say(doing string, since time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doing, l.began = words.Line(doing), since
}

// Stop clears the line for good. Later output starts on a clean line.
func (l *ProgressLine) Stop() {
	if l == nil {
		return
	}
	l.stop()
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// Around returns a writer to out that clears the line before it writes; the next tick redraws it.
// Everything printed while the line is shown must go through this writer.
func (l *ProgressLine) Around(out io.Writer) io.Writer {
	if l == nil {
		return out
	}
	return around{l, out}
}

type around struct {
	line *ProgressLine
	out  io.Writer
}

func (a around) Write(b []byte) (int, error) {
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	a.line.clear()
	return a.out.Write(b)
}

// clear needs the lock. A failed write to the terminal costs only the progress line.
func (l *ProgressLine) clear() {
	if l.shown != "" {
		_, _ = io.WriteString(l.terminal, clearLine)
		l.shown = ""
	}
}

func (l *ProgressLine) draw(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doing == "" {
		l.clear()
		return
	}
	if now.Before(l.from) {
		return
	}
	text, width := l.doing+", "+words.Took(now.Sub(l.began).Truncate(time.Second)), l.width()
	if width == inBackground {
		return
	}
	if width > 1 {
		text = Cut(text, width-1) // some terminals wrap after the last column
	}
	if text == l.shown {
		return
	}
	_, _ = io.WriteString(l.terminal, clearLine+text)
	l.shown = text
}
