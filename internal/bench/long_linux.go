package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func drain(r *rig, t *table) {
	n := r.n("drain")
	l, writes, window := r.lane("drain", n), r.once("twowrites", r.folder("baseline")), min(1000, n/3)
	l.tick() // the first has nothing to acknowledge
	var ticks, first, last sample
	for i := range n - 1 {
		ticks = append(ticks, l.tick())
		switch {
		case i%5 > 0:
		case i < window:
			first = append(first, writes())
		case i >= n-1-window:
			last = append(last, writes())
		}
		if (i+1)%10_000 == 0 {
			fmt.Fprintf(r.log, "bench: drain: %d of %d\n", i+1, n)
		}
	}
	l.approved()
	eachLine(filepath.Join(l.dir, ".results.jsonl"), n, func(i int, line []byte) bool {
		var result struct {
			Start int `json:"start_offset"`
		}
		return json.Unmarshal(line, &result) == nil && result.Start == i*entrySize
	})
	early, late := ticks[:window], ticks[len(ticks)-window:]
	t.row("first ticks", early, nil)
	t.row("two atomic writes beside them", first, nil)
	t.row("last ticks", late, nil)
	t.row("two atomic writes beside them", last, nil)
	growth := float64(median(late)) / float64(median(early))
	machine := float64(median(last)) / float64(median(first))
	t.figure("last / first", "%.2f, of the two writes %.2f", growth, machine)
	t.target(growth/machine <= 1.1, "no growth (at most 1.10, the machine's own change taken out)")
}

// batchLine is the i-th line of a file that entries are sent from.
func batchLine(i int) string {
	return fmt.Sprintf(`{"id":"m-%07d","prompt":"question %07[1]d of many"}`, i)
}

func batchID(i int) string { return fmt.Sprintf("m-%07d", i) }

func million(r *rig, t *table) {
	const raw = "a line of plain text that some program has appended with no id of its own"
	n, inbox, batch, ids := r.n("million"), r.path("inbox.jsonl"), r.path("batch.jsonl"), r.path("ids")
	writeLines(batch, n-1, batchLine)
	r.patience = 20 * patience // a batch takes its time
	t.inTurn(1, way{"`send --batch` of all", r.once("sh", "-c", `exec "$@" > ids`, "sh", "peak", r.path("peak"), r.program("heartbeat"), "send", "--inbox", inbox, "--batch", batch)},
		way{"`cat >> FILE && sync -d FILE`", r.once("sh", "-c", `cat "$1" >> "$2" && sync -d "$2"`, "sh", batch, r.path("plain.jsonl"))})
	t.figure("memory of that", "%s", megabytes(r.peak()))
	eachLine(ids, n-1, func(i int, line []byte) bool { return string(line) == batchID(i) })
	eachLine(inbox, n-1, func(i int, line []byte) bool {
		return bytes.HasPrefix(line, []byte(strings.TrimSuffix(batchLine(i), "}")+","))
	})
	appendLine(inbox, raw)
	rawID, middle := fmt.Sprintf("%x", sha256.Sum256([]byte(raw))), batchID(n/2)
	count := []string{"grep", "-c", ".", inbox}
	waits := func(id string) string { return fmt.Sprintf(`"event":"queued".*"(id|entry_id)":"%s"`, id) }
	for _, look := range []struct {
		args   []string
		limit  time.Duration
		beside []string
		right  string // what it prints
	}{
		{[]string{"status", "--json"}, 500 * time.Millisecond, count, fmt.Sprintf(`"queued":%d,`, n)},
		{[]string{"peek", "-n", "10", "--json"}, 20 * time.Millisecond, []string{"head", inbox}, fmt.Sprintf(`(?s)^\{.*"%s".*\n(\{.*\n){8}\{.*"%s".*\n$`, batchID(0), batchID(9))},
		{[]string{"log", middle, "--json"}, 2 * time.Second, []string{"grep", "-F", middle, inbox}, waits(middle)},
		{[]string{"log", rawID[:12], "--json"}, 2 * time.Second, []string{"sha256sum", inbox}, waits(rawID)},
		{[]string{"metrics"}, 500 * time.Millisecond, count, `(?m)^heartbeat_queue_entries\{[^}]*\} ` + regexp.QuoteMeta(fmt.Sprintf("%g", float64(n))) + `$`},
		{[]string{"send", "--id", "", "a question more"}, 0, []string{"sh", "-c", `grep -F "$1" "$2" || true`, "sh", "no such id", inbox}, `^m-\d{7}\n$`},
	} {
		name, right := fmt.Sprintf("`%s`", strings.Join(look.args, " ")), regexp.MustCompile(look.right)
		took := t.inTurn(r.n("looks"), way{name, func() time.Duration {
			if look.args[0] == "send" { // of a new id
				n++
				look.args[2] = batchID(n)
			}
			out, took := r.run(nil, nil, append([]string{"heartbeat", look.args[0], "--inbox", inbox}, look.args[1:]...)...)
			if !right.MatchString(out) {
				fail("%s: %q does not match %s", name, out, right)
			}
			return took
		}}, way{"`" + look.beside[0] + "`", r.once(look.beside...)})
		if look.limit > 0 {
			t.target(median(took[0]) <= look.limit, "%s within %v", name, look.limit)
		}
	}
}

// orchestrated measures stops of a run that waits for a person.
func orchestrated(r *rig, t *table) {
	babysitter := os.Getenv("HEARTBEAT_BABYSITTER")
	if babysitter == "" {
		babysitter = must(exec.LookPath("babysitter")) // or name it in HEARTBEAT_BABYSITTER
	}
	l := r.lane("run", 0)
	run, states := filepath.Join(l.dir, ".a5c", "runs", "r1"), filepath.Join(l.dir, "states")
	const process = "export async function process(inputs, ctx) { return await ctx.breakpoint({question: 'Go on?'}); }\n"
	check(os.WriteFile(filepath.Join(l.dir, "p.mjs"), []byte(process), 0o600))
	for _, args := range [][]string{
		{babysitter, "run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json"},
		{babysitter, "session:init", "--harness", "custom", "--session-id", "s", "--run-id", "r1", "--state-dir", states, "--json"},
		{r.program("heartbeat"), "orchestrate", "--inbox", l.inbox, "--run", run, "--babysitter", babysitter, "--once"},
	} {
		cmd := exec.CommandContext(r.ctx, args[0], args[1:]...)
		cmd.Dir = l.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			fail("%s: %w: %s", args[1], err, out)
		}
	}
	ours := func() time.Duration { return l.approved("--run", run, "--babysitter", babysitter) }
	theirs := func() time.Duration {
		out, took := r.run(nil, []byte(`{"session_id":"s","hook_event_name":"Stop"}`), babysitter, "hook:run", "--hook-type", "stop",
			"--harness", "claude-code", "--state-dir", states, "--runs-dir", filepath.Dir(run), "--json")
		if strings.TrimSpace(out) != "{}" {
			fail("babysitter printed %q", out)
		}
		return took
	}
	var medians []time.Duration
	for _, events := range []int{0, r.n("events")} {
		journal := filepath.Join(run, "journal")
		names := must(os.ReadDir(journal))
		for seq := len(names) + 1; seq <= events; seq++ {
			// After the last one, and ascending: the first ten characters of its name's second part are the time.
			name := fmt.Sprintf("%06d.%sZZZZ%012d.json", seq, names[len(names)-1].Name()[7:17], seq)
			check(os.WriteFile(filepath.Join(journal, name), []byte(`{"type":"PROCESS_LOG","recordedAt":"2026-01-01T00:00:00.000Z","data":{"label":"x"}}`), 0o600))
		}
		r.stay(2500 * time.Millisecond) // a journal that is young could change again without a new time
		for range 2 {                   // they read and keep what is new
			ours()
		}
		var own, other sample
		for range r.n("stops") { // not in turn: babysitter's adds an event to the journal
			own = append(own, ours())
		}
		for range r.n("stops") {
			other = append(other, theirs())
		}
		t.row(fmt.Sprintf("%d events more", events), own, other)
		t.row("babysitter", other, other)
		t.target(own.over(other) <= 1.0/50, "at most 1/50 of babysitter's")
		medians = append(medians, median(own))
	}
	t.target(medians[1] <= 2*medians[0], "the long journal at most twice the short one")
}
