package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// million is an inbox with so many entries waiting that nothing should read more of it
// than necessary.
type million struct {
	*runner
	n         int   // entries that wait
	peak      int64 // bytes of memory that sending them took
	heartbeat string
	dir       string
	inbox     string
	batch     string // the file that they were sent from
}

func measureMillion(b *bench) (table, error) {
	dir, err := b.folder("million")
	if err != nil {
		return table{}, err
	}
	r, err := b.runner()
	if err != nil {
		return table{}, err
	}
	defer r.close()
	r.patience = 20 * patience // a batch takes its time
	m := &million{
		runner: r, n: b.plan.million, heartbeat: b.programs.heartbeat, dir: dir,
		inbox: filepath.Join(dir, "inbox.jsonl"), batch: filepath.Join(dir, "batch.jsonl"),
	}
	sent, err := m.fill(b.programs.peak)
	if err != nil {
		return table{}, err
	}
	all := append([]*look{sent}, m.looks()...)
	for range b.plan.looks {
		for _, l := range all[1:] {
			if err := l.take(r); err != nil {
				return table{}, err
			}
		}
	}
	return m.table(all), nil
}

// fill sends all entries but one as a batch, and appends the last one as any program
// may.
func (m *million) fill(peakOf string) (*look, error) {
	if err := writeBatch(m.batch, m.n-1); err != nil {
		return nil, err
	}
	sent := &look{
		name: "`send --batch`", each: m.n - 1,
		beside: "`cat >> FILE && sync -d FILE`",
	}
	ids, err := os.Create(filepath.Join(m.dir, "ids"))
	if err != nil {
		return nil, err
	}
	report := filepath.Join(m.dir, "peak.txt")
	took, err := m.runInto(ids, nil, peakOf, report, m.heartbeat, "send", "--inbox", m.inbox, "--batch", m.batch)
	if err = errors.Join(err, ids.Close()); err != nil {
		return nil, err
	}
	if m.peak, err = readPeak(report); err != nil {
		return nil, err
	}
	plain := filepath.Join(m.dir, "plain.jsonl")
	_, beside, err := m.run(nil, "sh", "-c", `cat "$1" >> "$2" && sync -d "$2"`, "sh", m.batch, plain)
	if err = errors.Join(err, sentInOrder(m.inbox, ids.Name(), m.n-1)); err != nil {
		return nil, err
	}
	sent.took, sent.besideTook = sample{took}, sample{beside}
	_, err = appendEntry(m.inbox, rawEntry)
	return sent, err
}

// look is a question about the inbox, and what a shell can do of it.
type look struct {
	name, beside     string
	argv             func() []string
	besideArgv       []string
	each             int           // entries that it is about, if its speed is of interest
	limit            time.Duration // 0: no target
	right            func(stdout []byte) error
	took, besideTook sample
}

// take asks once, and runs what it is compared with.
func (l *look) take(r *runner) error {
	out, took, err := r.run(nil, l.argv()...)
	if err == nil {
		err = l.right(out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	_, beside, err := r.run(nil, l.besideArgv...)
	if err != nil {
		return fmt.Errorf("%s: %w", l.beside, err)
	}
	l.took, l.besideTook = append(l.took, took), append(l.besideTook, beside)
	return nil
}

func (m *million) table(all []*look) table {
	t := table{
		title: "A long queue",
		how: fmt.Sprintf("An inbox of %d entries that wait, sent as one batch, but for a last line without an id. What each printed was right. Beside each, in turn,\n"+
			"what a shell can do of it; the ratio is the median of each run's to the one beside it. Sending them took %s of memory.", m.n, megabytes(m.peak)),
		header: []string{"", "runs", "median", "worst", "target", "beside it", "median", "ratio"},
	}
	for _, l := range all {
		target := "none"
		if l.limit > 0 {
			target = fmt.Sprintf("%v: %s", l.limit, met(l.took.median() <= l.limit))
		}
		name := l.name
		if l.each > 0 {
			name += fmt.Sprintf(", %.0f a second", float64(l.each)/l.took.median().Seconds())
		}
		t.add(name, fmt.Sprint(len(l.took)), ms(l.took.median()), ms(l.took.max()), target,
			l.beside, ms(l.besideTook.median()), ratio(l.took.over(l.besideTook)))
	}
	return t
}
