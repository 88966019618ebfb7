package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// Delivery is a text that a Stop hook handed over. Its Reply is a [ReplySum].
type Delivery handed.Delivery

// TranscriptSize is the size of a transcript, or 0 if it cannot be read.
func TranscriptSize(path string) int64 {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// each calls f for every line since the delivery, with the line's offset. For a
// text that was handed over several times in a row it begins at the first of
// those. It is an error if the transcript is missing or has not grown.
func (d Delivery) each(f func(l *flat.Members, at int64)) error {
	file, err := openTranscript(d.Path)
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	at := d.Size
	if d.Times > 1 {
		at = min(d.From, d.Size)
	}
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return err
	}
	lines, grown := bufio.NewReader(file), false
	for d.End == 0 || at < d.End {
		line, err := lines.ReadBytes('\n')
		start := at
		at += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) > 0 && err == nil { // a last line may still be being written
			grown = grown || start >= d.Size
			f(flat.Begun(line), start)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if !grown {
		return errors.New("the transcript has not grown")
	}
	return nil
}

func openTranscript(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not block the hook
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("the transcript is not a regular file"), file.Close())
	}
	return file, nil
}

// lookBack is how much of a transcript is read before the delivery. A longer reply
// is not found; then the transcript proves less.
const lookBack = 256 << 10

// lastAnswer returns the last answer before the delivery, unless a prompt follows
// it.
func (d Delivery) lastAnswer() (last *flat.Members, found bool) {
	last = new(flat.Members)
	file, err := openTranscript(d.Path)
	if err != nil {
		return last, false
	}
	defer file.Close() // read only: nothing to lose
	from := max(0, d.Size-lookBack)
	b := make([]byte, d.Size-from)
	if _, err := file.ReadAt(b, from); err != nil {
		return last, false
	}
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte{'\n'}) // the rest of a line
	}
	for line := range bytes.Lines(b) {
		l := flat.Begun(line)
		if isAnswer(l) || isPrompt(l) {
			last = l
		}
	}
	return last, isAnswer(last)
}
