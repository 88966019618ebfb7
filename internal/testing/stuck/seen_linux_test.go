package stuck

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
)

// everywhere says that all five places that tell a person are looked at, by the kind of the
// trouble. Without it only `status` is, by the word that it has for its state.
const everywhere = true

// seen is what a person is to be told.
type seen struct {
	kind string // of the trouble, "" where there is none
	// state and says are what status has today: the reason in a word, and what stands in its
	// sentence.
	state, says string
	// letters is how many open dead letters there are, which status counts and does not name.
	letters int
	// untold says that notify cannot tell it: it can take no lock there.
	untold bool
	// wrong is what stands in the sentence of status today in place of says.
	wrong string
}

// trouble is a row of what is wrong.
type trouble struct{ Kind, Since, Urgency, Text, Do string }

// told is what a verb prints about an inbox.
type told struct {
	State, Why  string
	DeadLetters int `json:"dead_letters"`
	Troubles    []trouble
}

func (r *rig) json(verb string, args ...string) (t told) {
	out, _ := r.run("", verb, append(args, "--json")...) // its status says that something is wrong
	if at := strings.IndexByte(out, '{'); at >= 0 {
		_ = json.NewDecoder(strings.NewReader(out[at:])).Decode(&t) // what is not there is not told
	}
	return t
}

// sees waits until a person is told so wherever somebody looks.
func (r *rig) sees(want seen) {
	r.t.Helper()
	r.until(want.kind+" ("+want.state+") to be told", func() bool {
		r.lacks = r.missing(want)
		return r.lacks == ""
	})
}

// isOver waits until nobody is told so any more.
func (r *rig) isOver(of seen) {
	r.t.Helper()
	r.until(of.kind+" ("+of.state+") to be over", func() bool {
		if !everywhere || of.kind == "" {
			return r.missing(of) != ""
		}
		is := func(t trouble) bool { return t.Kind == of.kind }
		metrics, _ := r.run("", "metrics")
		return !slices.ContainsFunc(r.json("status").Troubles, is) && !slices.ContainsFunc(r.json("watch", "--once").Troubles, is) &&
			!strings.Contains(metrics, `kind="`+of.kind+`"} 1`)
	})
}

// missing are the places that do not tell it, "" if all do.
func (r *rig) missing(want seen) string {
	status := r.json("status")
	if !everywhere || want.kind == "" {
		said := regexp.MustCompile(cmp.Or(want.wrong, want.says)).MatchString(status.Why)
		if status.State == want.state && said && status.DeadLetters >= want.letters {
			return ""
		}
		return "status"
	}
	at := slices.IndexFunc(status.Troubles, func(t trouble) bool { return t.Kind == want.kind })
	if at < 0 {
		return "status"
	}
	row, without := status.Troubles[at], []string{}
	lacks := func(place string, tells bool) {
		if !tells {
			without = append(without, place)
		}
	}
	lacks("the sentence of its row, which is: "+row.Text, regexp.MustCompile(want.says).MatchString(row.Text))
	lacks("the sentence of status", at > 0 || status.State == "torn" || strings.Contains(ageless(status.Why), ageless(row.Text)))
	lacks("watch", slices.ContainsFunc(r.json("watch", "--once").Troubles, row.is))
	metrics, _ := r.run("", "metrics")
	lacks("metrics", regexp.MustCompile(`heartbeat_trouble\{inbox="[^"]*",kind="`+row.Kind+`"\} [1-9]`).MatchString(metrics))
	since := regexp.MustCompile(`heartbeat_trouble_since_timestamp_seconds\{inbox="[^"]*",kind="` + row.Kind + `"\} \d`)
	lacks("since when, in metrics", row.Since == "" || since.MatchString(metrics))
	doctor, _ := r.run("", "doctor", "--project", r.path("cwd"))
	lacks("doctor", strings.Contains(ageless(doctor), ageless(row.Text)))
	lacks("notify", want.untold || slices.ContainsFunc(r.notified(), func(t trouble) bool {
		return t.Kind == row.Kind && (t.Kind == "dead-letters" || strings.Contains(ageless(t.Text), ageless(row.Text)))
	}))
	return strings.Join(without, "; ")
}

// is reports whether both say the same of the same.
func (t trouble) is(other trouble) bool {
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
func (r *rig) notified() (all []trouble) {
	told := r.path("home/told")
	for _, name := range []string{r.path("q/.notified.json"), told} {
		_ = os.Remove(name) // it need not be there
	}
	_, _ = r.run("", "notify", "--stall", "1ms", "--notify", "cat >> "+told) // what it cannot tell is missing
	text, _ := os.ReadFile(told)
	for line := range strings.Lines(string(text)) {
		var one struct{ Trouble, Text string }
		if json.Unmarshal([]byte(line), &one) == nil {
			all = append(all, trouble{Kind: one.Trouble, Text: one.Text})
		}
	}
	return all
}
