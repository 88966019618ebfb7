package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"
)

// Delivery is a text that a Stop hook handed over, as far as a transcript can
// tell of it. No clock is asked: a line's time is the client's, and may be any.
type Delivery struct {
	Path string // of the session's transcript, a JSONL file
	Size int64  // of the transcript when the text was handed over
	// End is where the lines of another process begin, by which the session was
	// resumed, 0 if it was not. They tell nothing of what the killed one sent, but
	// their turns take along to the model what stands before them.
	End      int64
	Text     string
	PromptID string // the prompt that the Stop was in, empty if unknown
	// Reply is the [ReplySum] of what the assistant had said by then, and Fresh
	// that it had said something else at the Stop before: then its line in the
	// transcript is known.
	Reply string
	Fresh bool
	// Times is how often the very text was handed over since From, this time
	// included. Below 2, From is not used.
	From  int64
	Times int
}

// TranscriptSize is the size of a transcript, 0 when it cannot be read.
func TranscriptSize(path string) int64 {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// each calls f for every line that came since the delivery, with where it begins;
// for a text that was handed over several times in a row, since the first of those. A
// transcript that is not there, or has not grown, is an error.
func (d Delivery) each(f func(l gjson.Result, at int64)) error {
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
			f(gjson.ParseBytes(line), start)
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
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // or a FIFO would hold the hook up
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("the transcript is not a regular file"), file.Close())
	}
	return file, nil
}

// lookBack is how much of a transcript is read before its old end. A reply that is
// longer is not found, and proves nothing then.
const lookBack = 256 << 10

// lastAnswer is the last answer before the delivery, as far as the transcript
// shows it with no prompt behind it.
func (d Delivery) lastAnswer() (last gjson.Result, found bool) {
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
		_, b, _ = bytes.Cut(b, []byte{'\n'}) // amid a line
	}
	for line := range bytes.Lines(b) {
		l := gjson.ParseBytes(line)
		if isAnswer(l) || isPrompt(l) {
			last = l
		}
	}
	return last, isAnswer(last)
}
