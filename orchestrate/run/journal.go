package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is a journal's directory, held open: everything is read from the same directory,
// even while run:repair-journal replaces it.
type folder struct {
	fd    int
	path  string
	stamp string // of the directory, before it was listed
	young bool   // the directory changed so recently that another change may leave the same stamp
}

// errMoved says that a listed file is gone: the journal has to be read again.
var errMoved = errors.New("it is listed, and is not there")

// damaged is why babysitter refuses a journal, and what helps.
type damaged struct{ why, remedy string }

func (d *damaged) Error() string { return d.why + ": " + d.remedy }

// run:repair-journal drops events that are not JSON or request something a second time,
// and numbers the rest anew. It keeps events that make no sense, and babysitter refuses
// the journal after that, too.
const (
	repair  = "run:repair-journal mends it"
	remove  = "remove that file, and run:repair-journal mends the rest"
	restore = "restore it"
)

func openFolder(dir string) (*folder, error) {
	path := filepath.Join(dir, "journal")
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &folder{fd: fd, path: path}
	if f.stamp, f.young, err = stampOf(fd); err != nil {
		_ = unix.Close(fd) // the other error tells more
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return f, nil
}

func (f *folder) close() { _ = unix.Close(f.fd) } // it was only read

// names are the names of the events, in the order in which babysitter reads them.
func (f *folder) names() ([]string, error) {
	var names []string
	buf := make([]byte, 256<<10)
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(f.fd, buf) })
		if err != nil {
			return nil, &fs.PathError{Op: "list", Path: f.path, Err: err}
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".json") })
	slices.Sort(names)
	return names, checkNames(names)
}

// checkNames checks the names as babysitter does: SEQ.ULID.json, with the SEQs 1, 2, 3 and
// so on, and with ULIDs that rise.
func checkNames(names []string) error {
	last := ""
	for i, name := range names {
		seq, ulid, ok := splitName(name)
		switch {
		case !ok:
			return &damaged{fmt.Sprintf("%s is not named SEQ.ULID.json", name), repair}
		case seq != i+1:
			return &damaged{fmt.Sprintf("%s stands where the event with seq %d belongs", name, i+1), repair}
		case ulid <= last:
			return &damaged{fmt.Sprintf("the ULID of %s (seq %d) is not behind that of the event before", name, seq), repair}
		}
		last = ulid
	}
	return nil
}

// splitName splits a name. Babysitter would also read other forms of a number, which nobody
// writes.
func splitName(name string) (seq int, ulid string, ok bool) {
	number, rest, _ := strings.Cut(strings.TrimSuffix(name, ".json"), ".")
	ulid, _, _ = strings.Cut(rest, ".")
	if number == "" || len(number) > 15 || ulid == "" {
		return 0, "", false
	}
	for _, c := range []byte(number) {
		if c < '0' || c > '9' {
			return 0, "", false
		}
		seq = seq*10 + int(c-'0')
	}
	return seq, ulid, true
}

// event reads and parses one event. An error that matches [errMoved] says that
// the journal changed meanwhile.
func (f *folder) event(seq int, name string) (event, error) {
	text, err := f.read(name)
	if err != nil {
		return event{}, err
	}
	e, err := parseEvent(seq, text)
	if err != nil {
		return e, fault(seq, name, err)
	}
	return e, nil
}

func fault(seq int, name string, why error) error {
	remedy := remove
	if errors.Is(why, errNoJSON) || errors.Is(why, errTwice) {
		remedy = repair
	}
	return &damaged{fmt.Sprintf("%s (seq %d): %s", name, seq, why), remedy}
}

func (f *folder) read(name string) ([]byte, error) {
	path := filepath.Join(f.path, name)
	fd, err := retry(func() (int, error) {
		return unix.Openat(f.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err == unix.ENOENT {
		return nil, fmt.Errorf("%s: %w", name, errMoved)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxFile {
		return nil, &damaged{name + " is not a file of text, or has over 64 MiB", remove}
	}
	text := make([]byte, st.Size)
	for done := 0; done < len(text); {
		n, err := retry(func() (int, error) { return unix.Pread(fd, text[done:], int64(done)) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return text[:done], nil
		}
		done += n
	}
	return text, nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
