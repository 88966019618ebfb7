package guild

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Body is a report as it is sent. It is read once for each attempt and need not be in
// memory: a record is sent from its file.
type Body struct {
	From io.ReaderAt
	Size int64 // bytes
}

// BodyOf is a body that is in memory.
func BodyOf(b []byte) Body { return Body{From: bytes.NewReader(b), Size: int64(len(b))} }

func (b Body) payload() *payload {
	return &payload{size: b.Size, open: func() io.Reader { return io.NewSectionReader(b.From, 0, b.Size) }}
}

// payload is what a request sends.
type payload struct {
	open func() io.Reader
	size int64
}

// reading is one pass over a payload. net/http may go on reading after it has
// returned an answer; closed tells when it no longer does.
type reading struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (p *payload) read() *reading { return &reading{Reader: p.open(), closed: make(chan struct{})} }

func (r *reading) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// part is a stretch of a body, or a text in its place if from is negative.
type part struct {
	from, to int64
	text     string
}

// splice puts a payload together from parts of a body.
func (b Body) splice(parts []part) *payload {
	p := &payload{open: func() io.Reader {
		var all []io.Reader
		for _, part := range parts {
			if part.from < 0 {
				all = append(all, strings.NewReader(part.text))
			} else {
				all = append(all, io.NewSectionReader(b.From, part.from, part.to-part.from))
			}
		}
		return io.MultiReader(all...)
	}}
	for _, part := range parts {
		if part.from < 0 {
			p.size += int64(len(part.text))
		} else {
			p.size += part.to - part.from
		}
	}
	return p
}
