package upstream_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(4*runtime.GOMAXPROCS(0))); err != nil { // they mostly wait
		panic(err)
	}
	crash.Main(m, map[string]func() int{"hold": hold})
}

// hold takes two messages, changes one, and drops the other. It promises each step.
func hold() int {
	l, err := upstream.OpenLedger(os.Args[1], mine)
	for _, do := range []func() error{
		func() error { return l.Put(claim("a")) },
		func() error { return l.Put(claim("b")) },
		func() error { return l.Update("a", func(c *upstream.Claim) { c.Copy = 2 }) },
		func() error { l.Forget("b"); return l.Flush() },
	} {
		if err == nil {
			err = do()
		}
		if err == nil {
			crash.Promise("done")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// after are the ledgers behind each step.
func after() [][]upstream.Claim {
	again := claim("a")
	again.Copy = 2
	return [][]upstream.Claim{nil, {claim("a")}, {claim("a"), claim("b")}, {again, claim("b")}, {again}}
}

// TestACrashAtEveryCall leaves the ledger behind the last step that was promised, or behind
// the next one.
func TestACrashAtEveryCall(t *testing.T) {
	s := crash.Scenario{Run: func(dir string) crash.Command {
		return crash.Command{Name: "hold", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
	}}
	check := func(t *testing.T, c crash.Crash) {
		l, err := upstream.OpenLedger(filepath.Join(c.Dir, "inbox.jsonl"), mine)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		all, n := after(), len(c.Promised)
		may := [][]upstream.Claim{all[n]}
		if n+1 < len(all) {
			may = append(may, all[n+1])
		}
		is := l.All()
		if len(is) == 0 {
			is = nil
		}
		assert.Contains(t, may, is)
		require.NoError(t, l.Put(claim("c")))
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
}
