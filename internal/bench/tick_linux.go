package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func size(r *rig, t *table) {
	info := must(os.Stat(r.program("heartbeat-stop")))
	t.figure("heartbeat-stop", "%s", megabytes(info.Size()))
	t.target(info.Size() < 8_000_000, "under 8 MB")
}

func empty(r *rig) way { return way{"an empty Go program", r.once("empty")} }

func start(r *rig, t *table) {
	ratio := t.inTurn(r.n("pairs"), way{"heartbeat-stop --version", r.once("heartbeat-stop", "--version")}, empty(r)).ratio()
	t.target(ratio <= 1.2, "a ratio of at most 1.20")
	// It makes all tools of an agent, and ends with its stdin.
	ratio = t.inTurn(r.n("pairs"), way{"heartbeat mcp --inbox", r.once("heartbeat", "mcp", "--inbox", r.path("inbox.jsonl"))}, empty(r)).ratio()
	t.target(ratio <= 3, "of the tools of at most 3.0")
}

func tick(r *rig, t *table) {
	const inARow = 11 // the first may still pay for what the other kind left, and does not count
	pairs, alone := r.n("pairs"), r.n("alone")
	l := r.lane("tick", 1+pairs+alone/(inARow-1)*inARow)
	writes := r.once("twowrites", r.folder("baseline"))
	l.tick() // the first has nothing to acknowledge
	ratio := t.inTurn(pairs, way{"tick", l.tick}, way{"two atomic writes", writes}).ratio()
	var byItself [2]sample
	for range alone / (inARow - 1) {
		for i, once := range []func() time.Duration{l.tick, writes} {
			once()
			for range inARow - 1 {
				byItself[i] = append(byItself[i], once())
			}
		}
	}
	t.row("tick, by itself", byItself[0], nil)
	t.row("two atomic writes, by themselves", byItself[1], nil)
	t.figure("ratio of these medians", "%.3f", float64(median(byItself[0]))/float64(median(byItself[1])))
	most := 0.8 // where syncs cost a lot, only their number counts; where they are free, only the hook's own work
	switch {
	case r.sync >= time.Millisecond:
		most = 0.6
	case fileSystem(r.dir) == "tmpfs":
		most = 1.25
	}
	t.target(ratio <= most, "a ratio of at most %.2f", most)
}

func codex(r *rig, t *table) {
	const comm = "/proc/self/comm" // the client above a hook is called codex
	own := must(os.ReadFile(comm))
	check(os.WriteFile(comm, []byte("codex"), 0))
	r.atEnd(func() { check(os.WriteFile(comm, own, 0)) })
	claude, l := r.lane("claude", 1+r.n("pairs")), r.lane("codex", 1+r.n("pairs"))
	claude.env = []string{fmt.Sprintf("CLAUDE_PID=%d", os.Getpid())}
	rollout := filepath.Join(l.dir, "rollout-2026-01-02T03-04-05-"+sessionID+".jsonl")
	l.input["turn_id"], l.input["transcript_path"] = l.input["prompt_id"], rollout
	delete(l.input, "prompt_id")
	check(os.WriteFile(rollout, []byte(`{"type":"session_meta","payload":{}}`+"\n"), 0o600))
	l.tick() // the first has nothing to acknowledge
	claude.tick()
	ratio := t.inTurn(r.n("pairs"), way{"Codex", l.tick}, way{"Claude Code", claude.tick}).ratio()
	t.target(ratio <= 1.02, "a ratio of at most 1.02")
}

// bigfile has a small inbox and three positions in the big one, which is one file with
// three names, each in its own directory.
func bigfile(r *rig, t *table) {
	const small = 10 // lines
	big := r.n("big")
	writeLines(r.path("big.jsonl"), big, entry)
	names := []string{"small inbox", "cursor at 0", "cursor in the middle", "cursor near the end"}
	lanes := []*lane{r.lane("place-0", small)}
	for i := range names[1:] {
		l := r.lane("place-"+strconv.Itoa(i+1), 0)
		check(os.Link(r.path("big.jsonl"), l.inbox))
		lanes = append(lanes, l)
	}
	took, peaks := make([]sample, len(names)), make([]int64, len(names))
	// In a different order each time: a tick may pay for what the previous one left for
	// the file system to do.
	order := rand.New(rand.NewPCG(1, 2))
	for range r.n("rounds") {
		for i, from := range []int{0, 0, big / 2, big - small} {
			lanes[i].restart(from)
			for range 2 { // the first delivers, the second acknowledges too; their memory is measured, which takes time
				lanes[i].tickBy("peak", r.path("peak"))
				peaks[i] = max(peaks[i], r.peak())
			}
		}
		for range small - 3 { // one entry of the small inbox stays undelivered
			for _, i := range order.Perm(len(lanes)) {
				took[i] = append(took[i], lanes[i].tick())
			}
		}
	}
	steady, light := true, true
	for i, name := range names {
		t.row(fmt.Sprintf("%s, peak memory %s", name, megabytes(peaks[i])), took[i], took[0])
		steady, light = steady && took[i].over(took[0]) <= 1.1, light && peaks[i] < 20_000_000
	}
	t.target(steady, "ratios of at most 1.10")
	t.target(light, "memory under 20 MB")
}

// peak is what the program peak has measured.
func (r *rig) peak() int64 {
	return must(strconv.ParseInt(string(must(os.ReadFile(r.path("peak")))), 10, 64))
}

func send(r *rig, t *table) {
	const writers, turns = 8, 5
	each := r.n("sends") / writers / turns
	message := func(writer, i int) string { return padded(fmt.Sprintf("writer %d message %09d ", writer, i)) }
	inbox, plain := r.path("inbox.jsonl"), r.path("echo.txt")
	sends := func(argv ...string) func() time.Duration {
		sent := 0
		return func() time.Duration {
			done := make(chan error, writers)
			began := time.Now()
			for w := range writers {
				go func() {
					done <- caught(func() {
						for i := range each {
							r.run(nil, nil, append(argv, message(w, sent+i))...)
						}
					})
				}()
			}
			var err error
			for range writers {
				err = errors.Join(err, <-done)
			}
			took := time.Since(began)
			check(err)
			sent += each
			return took
		}
	}
	t.inTurn(turns, way{"`heartbeat send`", sends("heartbeat", "send", "--inbox", inbox)},
		way{"`echo >> FILE && sync -d FILE`", sends("sh", "-c", `echo "$2" >> "$1" && sync -d "$1"`, "sh", plain)})
	t.figure("entries in a turn", "%d", each*writers)
	for path, whole := range map[string]func(line, text string) bool{
		inbox: func(line, text string) bool {
			return json.Valid([]byte(line)) && strings.Contains(line, `"prompt":"`+text+`"`)
		},
		plain: func(line, text string) bool { return line == text },
	} {
		verifySent(path, writers, turns*each, func(w, i int, line string) bool { return whole(line, message(w, i)) })
	}
}

// verifySent checks that a file has n messages of each writer, whole and in the order in
// which it sent them, and nothing else.
func verifySent(path string, writers, n int, whole func(writer, i int, line string) bool) {
	next := make([]int, writers)
	eachLine(path, n*writers, func(_ int, line []byte) bool {
		_, after, _ := strings.Cut(string(line), "writer ")
		var writer int
		if _, err := fmt.Sscan(after, &writer); err != nil || writer < 0 || writer >= writers {
			return false
		}
		next[writer]++
		return whole(writer, next[writer]-1, string(line))
	})
}
