package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ignoredSignals are those that whoever started this process ignores, as nohup does
// with SIGHUP. It is asked once, since the answer does not outlast the first use of
// the signal here.
var ignoredSignals = sync.OnceValue(func() (ignored []os.Signal) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} { // Go overrules the others itself
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
})

// withDefaultSignals calls start, whose process ignores no signal that this one was
// told to ignore: it has a terminal of its own, whose keys and hangup are meant for it.
func withDefaultSignals(start func() (int, error)) (int, error) {
	ignored := ignoredSignals()
	if len(ignored) == 0 {
		return start()
	}
	caught := make(chan os.Signal, 1) // a signal that is caught has its default effect behind exec
	signal.Notify(caught, ignored...)
	defer signal.Stop(caught) // which ignores it again
	return start()
}
