package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	writers = 8
	// sendBlocks is how often the two kinds of writers take turns.
	sendBlocks = 5
)

// producer is a kind of writer, and how long its writers took.
type producer struct {
	name string
	file string
	argv func(text, file string) []string
	text func(line []byte) (string, error) // the text in a line of the file
	took time.Duration
}

// shellAppend is what people write without heartbeat, but equally durable.
const shellAppend = `echo "$1" >> "$2" && sync -d "$2"`

func (b *bench) producers(dir string) []*producer {
	return []*producer{
		{
			name: "`heartbeat send`", file: filepath.Join(dir, "inbox.jsonl"), text: promptOf,
			argv: func(text, file string) []string {
				return []string{b.programs.heartbeat, "send", "--inbox", file, text}
			},
		},
		{
			name: "`echo >> FILE && sync -d FILE`", file: filepath.Join(dir, "echo.txt"), text: plainText,
			argv: func(text, file string) []string { return []string{"sh", "-c", shellAppend, "sh", text, file} },
		},
	}
}

func measureSend(b *bench) (table, error) {
	dir, err := b.folder("send")
	if err != nil {
		return table{}, err
	}
	each := b.plan.sends / writers / sendBlocks
	kinds := b.producers(dir)
	for block := range sendBlocks {
		for _, p := range kinds {
			if err := b.write(p, block*each, each); err != nil {
				return table{}, fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	for _, p := range kinds {
		if err := p.verify(each * sendBlocks); err != nil {
			return table{}, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return sendTable(kinds, each*sendBlocks*writers), nil
}

// write lets all writers append n texts each, one after the other.
func (b *bench) write(p *producer, from, n int) error {
	done := make(chan error, writers)
	began := time.Now()
	for w := range writers {
		go func() { done <- b.writeAs(p, w, from, n) }()
	}
	var err error
	for range writers {
		err = errors.Join(err, <-done)
	}
	p.took += time.Since(began)
	return err
}

func (b *bench) writeAs(p *producer, writer, from, n int) error {
	r, err := b.runner()
	if err != nil {
		return err
	}
	defer r.close()
	for i := range n {
		if _, _, err := r.run(nil, p.argv(message(writer, from+i), p.file)...); err != nil {
			return err
		}
	}
	return nil
}

func sendTable(kinds []*producer, n int) table {
	t := table{
		title: "Sending",
		how: fmt.Sprintf("%d entries of 1 KB by %d writers at once, a process for each entry: `heartbeat send --inbox FILE TEXT`, against `sh -c` with an append\n"+
			"that is synced, in turns of %d. All lines were there afterwards, whole, and in each writer's order.", n, writers, n/sendBlocks),
		header: []string{"", "entries", "time", "entries/s", "ratio"},
	}
	echo := kinds[len(kinds)-1]
	for _, p := range kinds {
		t.add(p.name, fmt.Sprint(n), fmt.Sprintf("%.1f s", p.took.Seconds()), fmt.Sprintf("%.0f", float64(n)/p.took.Seconds()),
			ratio(float64(echo.took)/float64(p.took)))
	}
	t.result = "No target. A ratio above 1 means more entries per second than the shell."
	return t
}
