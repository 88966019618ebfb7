package process

import (
	"os"
	"sync"
	"syscall"
)

// reaper waits for the children of this process.
type reaper struct {
	mu      sync.Mutex // held while a child is started, so that its status is not dropped
	adopts  bool       // it waits for all children, also for adopted ones
	waiting map[int]chan<- syscall.WaitStatus
	spared  int // the guardian
}

var children = reaper{waiting: map[int]chan<- syscall.WaitStatus{}}

// start starts a child. Its status is sent once.
func (r *reaper) start(fork func() (int, error)) (pid int, status <-chan syscall.WaitStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pid, err = fork(); err != nil {
		return 0, nil, err
	}
	told := make(chan syscall.WaitStatus, 1)
	if r.adopts {
		r.waiting[pid] = told
		return pid, told, nil
	}
	go func() {
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
				break
			}
		}
		told <- status
	}()
	return pid, told, nil
}

// reap waits for whoever has ended.
func (r *reaper) reap(signals <-chan os.Signal) {
	for range signals {
		for r.reapOne() {
		}
	}
}

func (r *reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid == 0 {
		return false
	}
	if told, ours := r.waiting[pid]; ours {
		delete(r.waiting, pid)
		told <- status
	}
	return true
}
