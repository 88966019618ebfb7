package claude

import (
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// StopReport is what the transcript shows of a Stop: what hooks other than the caller's have said. The client writes each
// hook's words about a tenth of a second after that hook ended, in order, and its own summary once all have ended.
type StopReport struct {
	// Blocks are the texts with which hooks have the turn go on.
	Blocks []string
	// Ended says that a hook ended the session.
	Ended bool
	// Over says that the summary is there: nothing follows it.
	Over bool
	// heard are the commands and URLs whose words are there.
	heard []string
}

// Heard reports whether a hook's words are there.
func (s *StopReport) Heard(command string) bool { return slices.Contains(s.heard, command) }

// StopReader follows what a transcript shows of the Stop whose hooks run now.
type StopReader struct {
	StopReport
	path string
	at   int64
	// reply is the [ReplySum] of what ended in the Stop, or "" for a hook that the client waits for, because no later
	// turn begins then. behind says that a later turn has begun. answered says that the reply is there: on a busy
	// machine the client writes it late, and a summary before it belongs to another Stop.
	reply            string
	behind, answered bool
}

// NewStopReader begins to read for a Stop. A hook that was slow to start finds lines of this Stop already there; those of
// the Stop before end with its summary, or with an answer. reply is what ended in the Stop; leave it empty for a hook
// that the client waits for.
func NewStopReader(path, reply string) *StopReader {
	if reply != "" {
		reply = ReplySum(reply)
	}
	return &StopReader{path: path, at: max(0, TranscriptSize(path)-handed.MaxBack), reply: reply}
}

// Read reads the whole lines that have come since.
func (r *StopReader) Read() {
	// A transcript that cannot be read says nothing.
	_ = handed.Lines(r.path, r.at, func(line []byte, _, next int64) (enough bool) {
		r.at = next
		r.add(flat.Begun(line))
		return false
	})
}

// feedback begins what the client tells the model about a hook that blocked.
const feedback = "Stop hook feedback:\n"

func (r *StopReader) add(l *flat.Members) {
	switch a := l.Value("attachment"); {
	case l.Bool("isSidechain"):
	case isAnswer(l): // what came before it was about an earlier turn
		its := r.reply != "" && isReply(l, r.reply)
		if r.behind = r.Over && r.reply != "" && !its; !r.behind {
			r.StopReport, r.answered = StopReport{}, r.answered || its
		}
	case r.behind:
	case isSummary(l) && r.reply != "" && !r.answered:
		r.StopReport = StopReport{}
	case isSummary(l), isOverride(l) && r.Over: // the latter stands behind a summary that counts no more
		r.StopReport = summaryOf(l)
	case l.String("type") == "user" && l.Bool("isMeta"):
		if text, is := strings.CutPrefix(l.Value("message").Get("content").Text(), feedback); is {
			r.addBlock(text)
		}
	case a.Get("hookEvent").Text() == EventStop:
		r.heard = append(r.heard, a.Get("command").Text(), a.Get("blockingError", "command").Text())
		switch a.Get("type").Text() {
		case "hook_blocking_error":
			r.addBlock(a.Get("blockingError", "blockingError").Text())
		case "hook_additional_context":
			for _, text := range a.Get("content").Items() {
				r.addBlock(text.Text())
			}
		case "hook_stopped_continuation":
			r.Ended = true
		}
	}
}

func (s *StopReport) addBlock(text string) {
	if !slices.Contains(s.Blocks, text) {
		s.Blocks = append(s.Blocks, text)
	}
}

func summaryOf(l *flat.Members) StopReport {
	s := StopReport{Over: true, Ended: l.Bool("preventedContinuation")}
	failed := l.Value("failedHookErrorIndexes").Items()
	for i, text := range l.Value("hookErrors").Items() {
		if !slices.Contains(failed, flat.Value(strconv.Itoa(i))) { // a failed hook has no say
			s.addBlock(text.Text())
		}
	}
	for _, text := range l.Value("hookAdditionalContext").Items() {
		s.addBlock(text.Text())
	}
	return s
}

// Objections returns the texts with which other hooks of a Stop had the turn go on, from the client's last summary
// within reach of an offset that the transcript had at that Stop. own is the [ReplySum] of the text delivered in it, or
// "". told is false while the client may yet write that summary.
func Objections(path string, from int64, own string) (all []string, told bool) {
	var last StopReport
	answers := 0
	// A transcript that cannot be read has none.
	_ = handed.Lines(path, from, func(line []byte, _, next int64) (enough bool) {
		switch l := flat.Begun(line); {
		case isAnswer(l) && last.Over:
			answers++
		case isSummary(l):
			last = summaryOf(l)
		}
		far := next-from > 32<<20 // others wait for the inbox's lock
		told = last.Over || far
		return answers == 2 || far
	})
	return slices.DeleteFunc(last.Blocks, func(text string) bool { return own == ReplySum(text) || own == ReplySum(strings.TrimSpace(text)) }), told
}
