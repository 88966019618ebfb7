package claude

import (
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// StopReport is what the transcript shows of a Stop: the decisions of hooks other than the caller's. The client writes
// each about a tenth of a second after its hook ended, in order, and its own summary once all have ended.
type StopReport struct {
	Blocks []string // the texts with which hooks continue the turn
	Ended  bool     // a hook ended the session
	Over   bool     // the summary is there, and nothing follows it
	heard  []string // the commands and URLs of the hooks whose decision is there
}

// Heard reports whether a hook's decision is there.
func (s *StopReport) Heard(command string) bool { return slices.Contains(s.heard, command) }

// StopReader follows what a transcript shows of the Stop whose hooks run now.
type StopReader struct {
	StopReport
	path string
	at   int64
	// reply is the [ReplySum] of the reply before the Stop, or "" for a hook for which the client waits, because no later
	// turn begins then. behind says that a later turn has begun. answered says that the reply is there: on a busy machine
	// the client writes it late, and a summary before it belongs to another Stop.
	reply            string
	behind, answered bool
}

// NewStopReader returns a reader for the Stop that followed a reply. If the hook was slow to start, lines of this Stop are
// there already; those of the Stop before end with its summary, or with an answer. reply must be empty for a hook for
// which the client waits.
func NewStopReader(path, reply string) *StopReader {
	if reply != "" {
		reply = ReplySum(reply)
	}
	return &StopReader{path: path, at: max(0, TranscriptSize(path)-handed.MaxBack), reply: reply}
}

// Read reads the whole lines since the last call.
func (r *StopReader) Read() {
	// A transcript that cannot be read shows nothing.
	_ = handed.Lines(r.path, r.at, func(line []byte, _, next int64) (enough bool) {
		r.at = next
		r.add(flat.Begun(line))
		return false
	})
}

// feedback begins the text with which the client tells the model that a hook blocked.
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
	case isSummary(l), isOverride(l) && r.Over: // an override follows the summary that it cancels
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
		if !slices.Contains(failed, flat.Value(strconv.Itoa(i))) { // a failed hook decides nothing
			s.addBlock(text.Text())
		}
	}
	for _, text := range l.Value("hookAdditionalContext").Items() {
		s.addBlock(text.Text())
	}
	return s
}

// Objections returns the texts with which other hooks of a Stop continued the turn, from the client's last summary within
// reach of from, where the transcript ended at that Stop. own is the [ReplySum] of the text delivered in it, or "". known
// is false while the client may yet write that summary.
func Objections(path string, from int64, own string) (all []string, known bool) {
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
		known = last.Over || far
		return answers == 2 || far
	})
	return slices.DeleteFunc(last.Blocks, func(text string) bool { return own == ReplySum(text) || own == ReplySum(strings.TrimSpace(text)) }), known
}
