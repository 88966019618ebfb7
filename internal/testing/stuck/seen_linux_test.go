package stuck

import (
	"cmp"
	"encoding/json"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// everywhere says that all five places that tell a person are looked at, by the kind of the
// trouble. Without it only `status` is, by the word that it has for its state.
const everywhere = false

// seen is what a person is to be told.
type seen struct {
	kind string // of the trouble, "" where there is none
	// state and says are what status has today: the reason in a word, and what stands in its
	// sentence.
	state, says string
	// letters is how many open dead letters there are, which status counts and does not name.
	letters int
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
	missing := ""
	r.until(want.kind+" ("+want.state+") to be told", func() bool {
		missing = r.missing(want)
		return missing == ""
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

// missing is the place that does not tell it, "" if all do.
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
	row := status.Troubles[at]
	if !regexp.MustCompile(want.says).MatchString(row.Text) {
		return "what it says"
	}
	if at == 0 && status.Why != row.Text {
		return "the sentence of status"
	}
	if watch := r.json("watch", "--once"); !slices.ContainsFunc(watch.Troubles, func(t trouble) bool { return t.Kind == row.Kind && t.Text == row.Text }) {
		return "watch"
	}
	metrics, _ := r.run("", "metrics")
	for _, figure := range []string{`heartbeat_trouble\{inbox="[^"]*",kind="` + want.kind + `"\} 1\n`, `heartbeat_trouble_since_timestamp_seconds\{inbox="[^"]*",kind="` + want.kind + `"\} \d`} {
		if !regexp.MustCompile(figure).MatchString(metrics) && (row.Since != "" || !strings.Contains(figure, "since")) {
			return "metrics"
		}
	}
	if doctor, _ := r.run("", "doctor", "--project", r.path("cwd")); !strings.Contains(doctor, row.Text) {
		return "doctor"
	}
	return r.notified(row)
}

// notified is "notify" where that does not tell the row. It is told once: who looked before
// may have told it, so the state that says so is put away first.
func (r *rig) notified(row trouble) string {
	_ = exec.Command("rm", "-f", r.path("q/.notified.json")).Run()
	out, err := r.run("", "notify", "--stall", "1ms", "--notify", "cat >> "+r.path("home/told"))
	if errors.As(err, new(*exec.ExitError)) && !strings.Contains(out, row.Text) {
		return "notify"
	}
	all, _ := exec.Command("cat", r.path("home/told")).Output()
	if !strings.Contains(string(all), `"trouble":"`+row.Kind+`"`) || !strings.Contains(string(all), row.Text) {
		return "notify"
	}
	return ""
}
