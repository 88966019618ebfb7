package guardian

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Aside is a process of this program that works beside its keeper without being its child: for a keeper that ends and
// reaps all its children. It learns of its keeper's death by the end of its orders. The methods of nil do nothing.
type Aside struct {
	in   *os.File
	done chan struct{} // closed once the process has ended
}

// starting is added to the argv[0] of the intermediate process, which starts the Aside and exits.
const starting = "-start"

// orderTime bounds how long a stopped Aside may block its keeper; orders normally fit into the pipe.
const orderTime = time.Second

// StartAside starts an Aside by the name that [ServeAside] serves. note gets the lines that the Aside
// prints. Call StartAside before this process has or adopts children.
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
		defer func() { _ = read.Close() }() // only read
		for lines := bufio.NewScanner(read); lines.Scan(); {
			note(lines.Text())
		}
	}()
	return a, nil
}

// Order sends an order as a line of JSON, unless the Aside has ended. Unlike flags, orders do not
// appear in process lists.
func (a *Aside) Order(o any) {
	if a == nil {
		return
	}
	text, _ := json.Marshal(o)                           // orders always encode
	_ = a.in.SetWriteDeadline(time.Now().Add(orderTime)) // pipes have deadlines
	_, _ = a.in.Write(append(text, '\n'))
}

// Stop ends the orders and waits, as long as ctx allows, for the process to end. After that the process goes on alone.
func (a *Aside) Stop(ctx context.Context) {
	if a == nil {
		return
	}
	_ = a.in.Close() // nothing is left to write
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}

// ServeAside must be the first call of a program that uses [StartAside]. It does not return in the process of that name,
// where work gets the first order, the others until its keeper stops it or dies, and what passes a line to the keeper.
func ServeAside[T any](name string, work func(first T, others *json.Decoder, note func(line string)) error) {
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
		// Whoever ends all of a service's processes ends the keeper too, and this process must report that.
		// Ignored signals would stay ignored in the commands it runs, so they are caught.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
		note := func(line string) { _, _ = fmt.Println(strings.ReplaceAll(line, "\n", "; ")) } // the keeper may be gone
		if err := Obey(os.Stdin, note, work); err != nil {
			note(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Obey reads orders for [ServeAside].
func Obey[T any](in io.Reader, note func(line string), work func(first T, others *json.Decoder, note func(line string)) error) error {
	orders, first := json.NewDecoder(in), *new(T)
	switch err := orders.Decode(&first); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil // the keeper had nothing to do
	case err != nil:
		return errors.New("this process takes orders from heartbeat-launch and heartbeat-host alone")
	}
	return work(first, orders, note)
}
