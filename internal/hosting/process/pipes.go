package process

import "os"

// pipes are our ends of the client's streams, and its own.
type pipes struct {
	stdin, stdout, stderr *os.File
	their                 []*os.File
}

func openPipes() (p pipes, err error) {
	open := func(ours **os.File, weRead bool) {
		if err != nil {
			return
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return
		}
		*ours = w
		theirs := r
		if weRead {
			*ours, theirs = r, w
		}
		p.their = append(p.their, theirs)
	}
	open(&p.stdin, false)
	open(&p.stdout, true)
	open(&p.stderr, true)
	if err != nil {
		p.closeTheirs()
		p.closeOurs()
	}
	return p, err
}

func (p pipes) theirs() (fds []uintptr) {
	for _, f := range p.their {
		fds = append(fds, f.Fd()) // sets it to blocking, as the client expects it
	}
	return fds
}

func (p pipes) closeTheirs() {
	for _, f := range p.their {
		_ = f.Close() // a pipe
	}
}

func (p pipes) closeOurs() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close() // a pipe
		}
	}
}
