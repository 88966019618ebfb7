package deadletter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
)

// Kind is which report a letter holds.
type Kind string

// The reports that are kept until the guild has taken them.
const (
	Running Kind = "running"
	Record  Kind = "record"
)

// maxOwn is the largest letter that is sent, in bytes, maxForeign the largest one from
// a place where an agent can write, and maxForeignTotal the largest sum of those from
// one such place.
const (
	maxOwn          = 4 << 30
	maxForeign      = 256 << 20
	maxForeignTotal = 1 << 30
)

// Box is the dead letters beside one database.
type Box struct{ dir string }

// Beside is the box that belongs to a database. Its folders are made when they are
// first needed.
func Beside(dbPath string) Box { return Box{dir: filepath.Join(filepath.Dir(dbPath), "dlq")} }

// Dir is the folder of the box.
func (b Box) Dir() string { return b.dir }

// Path is where the letter of a session is.
func (b Box) Path(kind Kind, session string) string {
	if kind == Running {
		return filepath.Join(b.dir, "running", session+".json")
	}
	return filepath.Join(b.dir, session+".json")
}

// PutRecord keeps the record of a session. It survives a power loss once PutRecord has
// returned. If the transcript cannot be written, the record is kept without it and
// says why.
func (b Box) PutRecord(r *guild.Record) error {
	broken := false
	whole := *r
	if r.Transcript != nil {
		whole.Transcript = func(w io.Writer) error {
			err := r.Transcript(w)
			broken = err != nil
			return err
		}
	}
	err := b.put(Record, r.SessionID, whole.Encode)
	if err == nil || !broken {
		return err
	}
	bare := *r
	bare.Transcript, bare.TranscriptMissing = nil, err.Error()
	return b.put(Record, r.SessionID, bare.Encode)
}

// PutRunning keeps the report that a session runs, as [Box.PutRecord] does.
func (b Box) PutRunning(r guild.Running) error {
	return b.put(Running, r.SessionID, func(w io.Writer) error {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
}

func (b Box) put(kind Kind, session string, write func(io.Writer) error) error {
	if err := folder.CheckID(session); err != nil {
		return fmt.Errorf("keep the report of session %q: the id %w", session, err)
	}
	path := b.Path(kind, session)
	if err := b.makeDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("keep the report of session %s: %w", session, err)
	}
	if err := publish(path, write); err != nil {
		return fmt.Errorf("keep the report of session %s: %w", session, err)
	}
	return nil
}

// makeDir makes a folder of the box. It survives a power loss, also if an earlier
// process made it and was killed before its sync.
func (b Box) makeDir(dir string) error {
	if dir != b.dir {
		if err := b.makeDir(b.dir); err != nil {
			return err
		}
	}
	err := disk.MakeDir(dir)
	if errors.Is(err, fs.ErrExist) {
		return disk.SyncDir(filepath.Dir(dir))
	}
	return err
}

// publish is disk.Publish for what is too large for the memory.
func publish(path string, write func(io.Writer) error) error {
	tmp := path + ".tmp"
	if err := disk.Remove(tmp); err != nil { // a kill left it
		return err
	}
	f, _, err := disk.OpenWrite(tmp)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(&sequential{file: f}, 1<<20)
	if err = write(buffered); err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = disk.Rename(tmp, path)
	}
	if err != nil {
		_ = disk.Remove(tmp) // best effort: the next letter of this name removes it
	}
	return err
}

// sequential writes a file from its start.
type sequential struct {
	file *disk.File
	at   int64
}

func (s *sequential) Write(b []byte) (int, error) {
	if err := s.file.WriteAt(b, s.at); err != nil {
		return 0, err
	}
	s.at += int64(len(b))
	return len(b), nil
}

// Remove removes a letter and its mark. It is no error if there is none.
func (b Box) Remove(kind Kind, session string) error {
	if err := disk.Remove(b.Path(kind, session)); err != nil {
		return err
	}
	return b.unmark(Letter{Kind: kind, SessionID: session, Path: b.Path(kind, session)})
}

// Deliver sends a letter to the guild. A letter that the guild takes is removed, one
// that it refuses is marked, and any other stays as it is. The error is a
// [*guild.Refused], a [*guild.Unreachable], one that matches [fs.ErrNotExist] if there
// is no such letter, or says what is wrong with it.
func (b Box) Deliver(ctx context.Context, client *guild.Client, kind Kind, session string) (guild.Answer, error) {
	l := Letter{Kind: kind, SessionID: session, Path: b.Path(kind, session)}
	return b.deliver(ctx, client, &l)
}

// ReportRunning keeps the report that a session runs and then delivers it.
func (b Box) ReportRunning(ctx context.Context, client *guild.Client, r guild.Running) (guild.Answer, error) {
	if err := b.PutRunning(r); err != nil {
		answer, sendErr := client.Running(ctx, r) // a full disk must not keep it from the guild
		if sendErr != nil {
			return answer, errors.Join(sendErr, err)
		}
		return answer, nil
	}
	return b.Deliver(ctx, client, Running, r.SessionID)
}

func (b Box) deliver(ctx context.Context, client *guild.Client, l *Letter) (guild.Answer, error) {
	f, err := l.open()
	if err != nil {
		return guild.Answer{}, fmt.Errorf("send the dead letter %s: %w", l.Path, err)
	}
	defer f.Close() // it was only read
	body := guild.Body{From: f, Size: f.Info().Size}
	var answer guild.Answer
	if l.Kind == Running {
		if l.running != nil {
			body = guild.BodyOf(l.running)
		}
		answer, err = client.SendRunning(ctx, body)
	} else {
		answer, err = client.Record(ctx, body)
	}
	if err == nil {
		return answer, errors.Join(l.remove(f), b.unmark(*l))
	}
	var refused *guild.Refused
	var away *guild.Unreachable
	if errors.As(err, &refused) && !errors.As(err, &away) {
		return answer, errors.Join(err, b.mark(l, f, refused))
	}
	return answer, err
}
