package guardian

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Aside is a process of this program that works beside its keeper, and is none of its children:
// for a keeper that ends all of those, and reaps them. It also learns of its keeper's death, as
// the end of its orders.
type Aside struct {
	in   *os.File
	done chan struct{} // closed once it has ended
}

// starting is behind the argv[0] of the process that starts one, and ends at once.
const starting = "-start"

// orderTime is how long one that was stopped may keep its keeper waiting: its orders fit into
// the pipe.
const orderTime = time.Second

// StartAside starts one, which [ServeAside] knows by this name. note gets the lines that it
// prints. Call it before this process has children, or adopts any.
func StartAside(name string, note func(line string)) (*Aside, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	read, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), write.Close())
	}
	c := exec.Command(self)
	c.Args[0], c.Dir = name+starting, "/"
	c.Stdin, c.Stdout = in, out
	if err = errors.Join(c.Run(), in.Close(), out.Close()); err != nil {
		return nil, errors.Join(err, write.Close(), read.Close())
	}
	a := &Aside{write, make(chan struct{})}
	go func() {
		defer close(a.done)
		defer func() { _ = read.Close() }() // all was read
		for lines := bufio.NewScanner(read); lines.Scan(); {
			note(lines.Text())
		}
	}()
	return a, nil
}

// Order gives it an order, unless it has ended.
func (a *Aside) Order(line []byte) {
	_ = a.in.SetWriteDeadline(time.Now().Add(orderTime)) // a pipe has one
	_, _ = a.in.Write(line)
}

// End ends the orders. The channel is closed once the process has ended.
func (a *Aside) End() <-chan struct{} {
	_ = a.in.Close() // it is only there to be closed at a death
	return a.done
}

// ServeAside must be called first in a program that uses [StartAside]. It does not return in the
// process of that name.
func ServeAside(name string, work func(in io.Reader, out io.Writer) error) {
	switch os.Args[0] {
	case name + starting:
		c := exec.Command("/proc/self/exe")
		if self, err := os.Executable(); err == nil {
			c.Path = self
		}
		c.Args = []string{name}
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stdout
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if c.Start() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case name:
		// Whoever ends all of a service's processes ends its keeper, too, whose end is
		// then to be told. A signal that is ignored would be ignored by the command.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
