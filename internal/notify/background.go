package notify

import (
	"context"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

const (
	// lookEvery is how often an inbox is looked at in which nothing changes.
	lookEvery = time.Minute
	// lookRest is how long changes are collected before a look.
	lookRest = 2 * time.Second
)

// Background tells in a goroutine, for a process that stays with an inbox. It never
// keeps that process waiting, until [Background.Stop].
type Background struct {
	box     *inbox.Inbox
	options Options
	note    func(text string)

	news   chan struct{}
	end    chan struct{} // closed at the end
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	said   string // the last error

	mu       sync.Mutex
	launcher []Occasion
}

// Start begins to tell. note gets a sentence where something cannot be told. Without a
// command Start returns nil, whose methods do nothing.
func Start(box *inbox.Inbox, o Options, note func(text string)) *Background {
	if o.Command == "" {
		return nil
	}
	b := &Background{box: box, options: o, note: note, news: make(chan struct{}, 1), end: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.done.Go(b.run)
	b.Poke()
	return b
}

// Poke asks for a look.
func (b *Background) Poke() {
	if b == nil {
		return
	}
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// Say has an occasion told that nothing on the disk shows.
func (b *Background) Say(o Occasion) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.launcher = append(b.launcher, o)
	b.mu.Unlock()
	b.Poke()
}

// Stop looks once more, for as long as ctx allows, and ends the telling.
func (b *Background) Stop(ctx context.Context) {
	if b == nil {
		return
	}
	stop := context.AfterFunc(ctx, b.cancel)
	defer stop()
	close(b.end)
	b.done.Wait()
	b.cancel()
}

// run looks whenever there is news, and at the end. What comes together is told
// together.
func (b *Background) run() {
	for {
		next := b.look()
		if !b.sleep(max(lookRest, min(lookEvery, next)), b.news) || !b.sleep(lookRest, nil) {
			break
		}
	}
	b.look()
}

// sleep waits for some time, or for news. It reports whether the telling goes on.
func (b *Background) sleep(d time.Duration, news chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-b.end:
		return false
	}
	return true
}

// look tells, and returns when to look again at the latest.
func (b *Background) look() time.Duration {
	b.mu.Lock()
	launcher := b.launcher
	b.launcher = nil
	b.mu.Unlock()
	r, err := Tell(b.ctx, b.box, b.options, launcher...)
	text := ""
	if err != nil && b.ctx.Err() == nil {
		text = words.Sentence(err.Error())
	}
	if text != "" && text != b.said {
		b.note(text)
	}
	b.said = text
	if r.Next.IsZero() {
		return lookEvery
	}
	return time.Until(r.Next)
}
