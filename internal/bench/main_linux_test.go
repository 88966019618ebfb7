package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	tests "heartbeat/internal/testing/build"
	"heartbeat/internal/testing/long"
)

// Each measure, with its checks, once.
func TestMeasures(t *testing.T) {
	// As the tests are compiled; what is shipped is compiled once more, without cgo.
	bin, remove, err := tests.Commands("cmd/...", "internal/bench/empty", "internal/bench/peak", "internal/bench/twowrites")
	if long.Wanted() {
		remove()
		bin, err = build(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(bin)) })
	tiny := func() *rig { return &rig{ctx: t.Context(), bin: bin, level: 2, log: t.Output()} }
	for _, m := range measures {
		t.Run(m.name, func(t *testing.T) {
			if _, err := exec.LookPath("babysitter"); m.name == "run" && err != nil && os.Getenv("HEARTBEAT_BABYSITTER") == "" {
				t.Skip("babysitter is not here")
			}
			table, err := tiny().take(m, t.TempDir())
			require.NoError(t, err)
			assert.NotEmpty(t, table.rows)
		})
	}
	for name, c := range map[string]struct {
		do   func(*rig)
		says string
	}{
		"not the next entry": {func(r *rig) { l := r.lane("l", 3); l.next = 1; l.tick() }, `"entry 000000000`},
		"no entry":           {func(r *rig) { r.lane("l", 0).tick() }, "does not deliver"},
		"a warning": {func(r *rig) {
			l := r.lane("l", 3)
			l.tick()
			l.tick()
			check(os.Truncate(l.inbox, 0))
			l.tick()
		}, "it complained"},
		"an entry is left":        {func(r *rig) { l := r.lane("l", 2); l.tick(); l.approved() }, "the last tick delivered"},
		"a failure":               {func(r *rig) { r.run(nil, nil, "sh", "-c", "echo oops >&2; exit 3") }, "exit status 3: oops"},
		"too much for a pipe":     {func(r *rig) { r.run(nil, make([]byte, 1<<20), "cat") }, "more than a pipe is sure to hold"},
		"a hook that never waits": {func(r *rig) { r.lane("l", 1).wakes(0) }, "ended before it waited"},
		"a line that is torn": {func(r *rig) {
			check(os.WriteFile(r.path("f"), []byte("a\nb"), 0o600))
			eachLine(r.path("f"), 2, nil)
		}, "1 whole lines for 2 entries"},
		"sent out of order": {func(r *rig) {
			appendLine(r.path("f"), "writer 0 message 1")
			verifySent(r.path("f"), 1, 1, func(_, i int, line string) bool { return strings.HasSuffix(line, fmt.Sprint(i)) })
		}, "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := tiny().take(measure{take: func(r *rig, _ *table) { c.do(r) }}, dir)
			require.ErrorContains(t, err, c.says)
			left, err := filepath.Glob(dir + "/*")
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func TestTheTableIsPrinted(t *testing.T) {
	tick := time.Duration(0)
	table := &table{title: "T"}
	took := table.inTurn(3, way{"x", func() time.Duration { tick += 2 * time.Millisecond; return tick }}, way{"floor", func() time.Duration { return time.Millisecond }})
	table.target(took.ratio() <= 3, "at most %d", 3)
	table.figure("y", "%s", megabytes(500_000_000))
	assert.Equal(t, "## T\n\n|  | runs | median | min | worst | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"+
		"| x | 3 | 4.00 ms | 2.00 ms | 6.00 ms | 4.000 |\n| floor | 3 | 1.00 ms | 1.00 ms | 1.00 ms | 1.000 |\n| y |  | 500.0 MB |  |  |  |\n\n"+
		"Targets: at most 3: **missed**.\n", table.String())
	assert.EqualValues(t, 3, median(sample{5, 1}))

	assert.Regexp(t, `^Machine: .+, \d+ cores, Linux .+, .+ \(scratch directory\), go1\..+; load .+ of commit .+`, machine(t.Context(), t.TempDir()))
	for _, args := range [][]string{{"tick"}, {"-only", "nothing"}} {
		require.ErrorContains(t, run(t.Context(), args, t.Output(), t.Output()), slices.Max(args))
	}
}
