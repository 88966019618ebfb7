package stuck

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Seen is what a person is to be told.
type Seen struct {
	Kind string // of the trouble, "" where there is none
	// State and Says are what status has: the reason in a word, and what stands in its sentence.
	State, Says string
	// Letters is how many open dead letters there are, which status counts and does not name.
	Letters int
	// Untold says that notify cannot tell it: it can take no lock there.
	Untold bool
	// Wrong is what stands in the sentence of status in place of Says where there is no trouble.
	Wrong string
}

// Look is how an inbox is looked at.
type Look struct {
	Inbox   string // its path
	Project string // of its sessions
	// Scratch is a file that whoever looks may write.
	Scratch string
	// Verb runs a verb of heartbeat on the inbox, and is what that prints.
	Verb func(verb string, args ...string) string
	// Hosted and Launched are what the host prints of each session that has not ended, and the report of a launcher that has, if any:
	// JSON with the troubles.
	Hosted, Launched func() string
}

// Trouble is a row of what is wrong.
type Trouble struct {
	Kind, Since, Urgency, Text, Do, Run string

	What string // the occasion, of what notify tells
}

// Told is what a verb prints about an inbox.
type Told struct {
	State, Why  string
	DeadLetters int `json:"dead_letters"`
	Troubles    []Trouble
	Runs        []struct{ Run, State string }
}

// JSON is what a verb prints. What is not there is not told.
func (l Look) JSON(verb string, args ...string) (t Told) {
	out := l.Verb(verb, append(args, "--json")...)
	if at := strings.IndexByte(out, '{'); at >= 0 {
		_ = json.NewDecoder(strings.NewReader(out[at:])).Decode(&t)
	}
	return t
}

// Over reports whether nobody is told so any more, and who was told of it is told that it is over.
func (l Look) Over(of Seen) bool {
	if of.Kind == "" {
		return l.Missing(of) != ""
	}
	is := func(t Trouble) bool { return t.Kind == of.Kind }
	if slices.ContainsFunc(l.JSON("status").Troubles, is) || slices.ContainsFunc(l.JSON("watch", "--once").Troubles, is) ||
		strings.Contains(l.Verb("metrics"), `kind="`+of.Kind+`"} `) {
		return false
	}
	doctor := l.Verb("doctor", "--project", l.Project)
	if t := regexp.MustCompile(of.Says); of.Kind != "dead-letters" && regexp.MustCompile(`(?m)^(warn|fail) +troubles\b`).MatchString(doctor) && t.MatchString(ageless(doctor)) {
		return false
	}
	// A dead letter is told once, the share of a day that is spent, too, and on a full disk nothing is noted.
	return of.Untold || slices.Contains([]string{"dead-letters", "day-near-limit", "disk-full"}, of.Kind) || slices.ContainsFunc(l.tell(), func(t Trouble) bool {
		return t.What == "over" && t.Kind == of.Kind
	})
}

// Missing are the places of the five that do not tell it in the same words, "" if all do.
func (l Look) Missing(want Seen) string {
	status := l.JSON("status")
	if want.Kind == "" {
		said := regexp.MustCompile(cmp.Or(want.Wrong, want.Says)).MatchString(status.Why)
		if status.State == want.State && said && status.DeadLetters >= want.Letters {
			return ""
		}
		return "status"
	}
	at := slices.IndexFunc(status.Troubles, func(t Trouble) bool { return t.Kind == want.Kind })
	if at < 0 {
		return "status"
	}
	row, without := status.Troubles[at], []string{}
	lacks := func(place string, tells bool) {
		if !tells {
			without = append(without, place)
		}
	}
	lacks("the sentence of its row, which is: "+row.Text, regexp.MustCompile(want.Says).MatchString(row.Text))
	lacks("the text of status", at > 0 || strings.Contains(ageless(l.Verb("status")), ageless(row.Text)))
	lacks("watch", slices.ContainsFunc(l.JSON("watch", "--once").Troubles, row.is))
	metrics := l.Verb("metrics")
	lacks("metrics", regexp.MustCompile(`heartbeat_trouble\{inbox="[^"]*",kind="`+row.Kind+`"\} [1-9]`).MatchString(metrics))
	since := regexp.MustCompile(`heartbeat_trouble_since_timestamp_seconds\{inbox="[^"]*",kind="` + row.Kind + `"\} \d`)
	lacks("since when, in metrics", row.Since == "" || since.MatchString(metrics))
	lacks("doctor", strings.Contains(ageless(l.Verb("doctor", "--project", l.Project)), ageless(row.Text)))
	lacks("notify", want.Untold || slices.ContainsFunc(l.notified(), func(t Trouble) bool {
		return t.Kind == row.Kind && (t.Kind == "dead-letters" || strings.Contains(ageless(t.Text), ageless(row.Text)))
	}))
	if l.Hosted != nil {
		for session := range strings.Lines(l.Hosted()) {
			lacks("the host's report", slices.ContainsFunc(troublesOf(session), row.is))
		}
	}
	if l.Launched != nil {
		for _, t := range troublesOf(l.Launched()) { // of a moment that may be long past
			lacks("the launcher's report, which says: "+t.Text, t.Kind != row.Kind || t.is(row))
		}
	}
	return strings.Join(without, "; ")
}

func troublesOf(report string) []Trouble {
	var t Told
	_ = json.Unmarshal([]byte(report), &t) // none is in what is no JSON
	return t.Troubles
}

// Unseen are the places of the five that do not show how a run stands that needs nobody, "" if all do. says is what its
// sentence has.
func (l Look) Unseen(run, state, says string) string {
	var without []string
	lacks := func(place string, shows bool) {
		if !shows {
			without = append(without, place)
		}
	}
	sentence := regexp.MustCompile("the run " + run + " " + says)
	shows := func(verb string, args ...string) bool { return sentence.MatchString(ageless(l.Verb(verb, args...))) }
	troubled := func(t Trouble) bool { return t.Run == run || t.What == "drained" }
	same := func(t Told) bool {
		return slices.Contains(t.Runs, struct{ Run, State string }{run, state}) && !slices.ContainsFunc(t.Troubles, troubled)
	}
	lacks("status", shows("status") && same(l.JSON("status")))
	lacks("watch", shows("watch", "--once") && same(l.JSON("watch", "--once")))
	lacks("doctor", shows("doctor", "--project", l.Project))
	metrics := l.Verb("metrics")
	lacks("metrics", strings.Contains(metrics, `heartbeat_runs_`+strings.ReplaceAll(state, " ", "_")+`{inbox="`+l.Inbox+`"} 1`) && same(l.JSON("metrics")))
	since := `heartbeat_run_since_timestamp_seconds{inbox="` + l.Inbox + `",run="` + run + `",state="` + state + `"} `
	lacks("since when, in metrics", strings.Contains(metrics, since))
	lacks("notify, which has nothing to tell of it", !slices.ContainsFunc(l.tell("--notify-drained"), troubled))
	return strings.Join(without, "; ")
}

// is reports whether both say the same of the same.
func (t Trouble) is(other Trouble) bool {
	return t.Kind == other.Kind && ageless(t.Text) == ageless(other.Text)
}

// ages are what changes from one look to the next although nothing has happened, and the name
// of the inbox, which only whoever looks at many says.
var ages = regexp.MustCompile(`\([0-9dhms ]+ ago\)|(in \S+ )?for (\d+(\.\d+)?[dhms]+ ?)+`)

func ageless(text string) string {
	return strings.Join(strings.Fields(ages.ReplaceAllString(text, "")), " ")
}

// notified are the troubles that a person is told of who was told of none. What one who is
// told keeps beside the inbox is put away first.
func (l Look) notified() (all []Trouble) {
	for _, name := range []string{filepath.Join(filepath.Dir(l.Inbox), ".notified.json"), l.Scratch} {
		_ = os.Remove(name) // it need not be there
	}
	return l.tell()
}

// tell has what was not told yet told, and returns all that was told since the scratch file is there.
func (l Look) tell(flags ...string) (all []Trouble) {
	l.Verb("notify", append(flags, "--stall", "1ms", "--notify", "cat >> "+l.Scratch)...) // what it cannot tell is missing
	text, _ := os.ReadFile(l.Scratch)
	for line := range strings.Lines(string(text)) {
		var one struct{ What, Trouble, Text, Run string }
		if json.Unmarshal([]byte(line), &one) == nil {
			all = append(all, Trouble{What: one.What, Kind: one.Trouble, Text: one.Text, Run: one.Run})
		}
	}
	return all
}
