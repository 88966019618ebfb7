package claude

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/flat"
)

// StopSaid is what the transcript shows of a Stop: what hooks besides the caller's have said.
// The client writes that about a tenth of a second after each of them has ended, in order,
// and its own summary once all have.
type StopSaid struct {
	// Goes is what has the turn go on.
	Goes []string
	// Ended says that one of them ended the session.
	Ended bool
	// Over says that the summary is there: nothing comes after it.
	Over bool
	// heard are the commands and addresses whose words are there.
	heard []string
}

// Heard reports whether a hook's words are there.
func (s *StopSaid) Heard(command string) bool { return slices.Contains(s.heard, command) }

// StopReader follows what a transcript shows of the Stop whose hooks run now.
type StopReader struct {
	StopSaid
	path string
	at   int64
	// reply is the [ReplySum] of what ended in the Stop, "" for a hook that the client waits
	// for; then no later turn begins. behind says that one has begun.
	reply  string
	behind bool
}

// stopPart bounds what is read of a transcript at once. A longer line is passed over.
const stopPart = 4 << 20

// ReadStop begins to read for a Stop. A hook that was slow to start finds lines of this Stop
// there already; those of the one before end with its summary, or an answer. reply is what
// ended in the Stop; leave it out for a hook that the client waits for.
func ReadStop(path, reply string) *StopReader {
	if reply != "" {
		reply = ReplySum(reply)
	}
	return &StopReader{path: path, at: max(0, TranscriptSize(path)-lookBack), reply: reply}
}

// Look reads what has come, as far as it is whole.
func (r *StopReader) Look() {
	readLines(r.path, &r.at, func(l *flat.Members) bool { r.take(l); return false })
}

// readLines calls f for the whole lines of a transcript from an offset on, which it moves,
// until f has seen enough.
func readLines(path string, at *int64, f func(*flat.Members) (enough bool)) {
	file, err := openTranscript(path)
	if err != nil {
		return
	}
	defer file.Close() // read only: nothing to lose
	for range 8 {
		size := min(fileSize(file)-*at, stopPart)
		if size <= 0 {
			return
		}
		b := make([]byte, size)
		n, _ := file.ReadAt(b, *at) // a file that was cut off has less
		b = b[:n]
		end := bytes.LastIndexByte(b, '\n') + 1
		if end == 0 && n < stopPart {
			return // a line that is still being written
		}
		for line := range bytes.Lines(b[:end]) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && f(flat.Begun(line)) {
				return
			}
		}
		if end == 0 {
			end = n
		}
		*at += int64(end)
	}
}

func fileSize(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// feedback begins what the client tells the model of a hook that blocked.
const feedback = "Stop hook feedback:\n"

func (r *StopReader) take(l *flat.Members) {
	switch a := l.Value("attachment"); {
	case l.Bool("isSidechain"):
	case isAnswer(l): // to what was said before
		if r.behind = r.Over && r.reply != "" && !says(l, r.reply); !r.behind {
			r.StopSaid = StopSaid{}
		}
	case r.behind:
	case isSummary(l):
		r.StopSaid = summaryOf(l)
	case l.String("type") == "user" && l.Bool("isMeta"):
		if text, is := strings.CutPrefix(l.Value("message").Get("content").Text(), feedback); is {
			r.goes(text)
		}
	case a.Get("hookEvent").Text() == EventStop:
		r.heard = append(r.heard, a.Get("command").Text(), a.Get("blockingError", "command").Text())
		switch a.Get("type").Text() {
		case "hook_blocking_error":
			r.goes(a.Get("blockingError", "blockingError").Text())
		case "hook_additional_context":
			for _, text := range a.Get("content").Items() {
				r.goes(text.Text())
			}
		case "hook_stopped_continuation":
			r.Ended = true
		}
	}
}

func (s *StopSaid) goes(text string) {
	if !slices.Contains(s.Goes, text) {
		s.Goes = append(s.Goes, text)
	}
}

// summaryOf is what the client's summary says of a Stop.
func summaryOf(l *flat.Members) StopSaid {
	s := StopSaid{Over: true, Ended: l.Bool("preventedContinuation")}
	failed := l.Value("failedHookErrorIndexes").Items()
	for i, text := range l.Value("hookErrors").Items() {
		if !slices.Contains(failed, flat.Value(strconv.Itoa(i))) { // one that failed has no say
			s.goes(text.Text())
		}
	}
	for _, text := range l.Value("hookAdditionalContext").Items() {
		s.goes(text.Text())
	}
	return s
}

// goesOn reports whether a summary says that hooks had the turn go on.
func goesOn(summary *flat.Members) bool {
	s := summaryOf(summary)
	return len(s.Goes) > 0 && !s.Ended
}

// Objections is what other hooks of a Stop had the turn go on with, by the client's summary
// of it: the last one within reach of an offset that the transcript had at that Stop. own is
// the [ReplySum] of the text that was delivered in it, "" if none was.
func Objections(path string, from int64, own string) (all []string) {
	var last StopSaid
	at, answers := from, 0
	readLines(path, &at, func(l *flat.Members) (enough bool) {
		switch {
		case isAnswer(l) && last.Over:
			answers++
		case isSummary(l):
			last = summaryOf(l)
		}
		return answers == 2
	})
	for _, text := range last.Goes {
		if own == "" || ReplySum(text) != own && ReplySum(strings.TrimSpace(text)) != own {
			all = append(all, text)
		}
	}
	return all
}
