package crash

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"heartbeat/internal/disk"
)

// Crash is the argument of a check: what one crash left, and what must hold.
type Crash struct {
	Dir string // what the crash left; the check may change it

	// Made is how many of Ops, the calls of the undisturbed run, were made before the
	// crash, without a torn one. The run was complete if it is all of them. The paths
	// in Ops are those of another directory.
	Made int
	Ops  []disk.Op

	Promised []string // the texts given to Promise before the crash
	Result   Result   // how the child ended; empty after a power loss
}

// OnlySynced, as the number of rounds, makes only the one mixture in which nothing
// survives that was not synced.
const OnlySynced = -1

// EveryPowerLoss lets the power fail before, between and after the calls of a run.
// It calls check with several things that this may leave: the worst, the best, three
// kinds in between, and as many random mixtures as rounds says. These depend only on
// seed.
func EveryPowerLoss(t *testing.T, rec *Recording, seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	rec.everyPowerLoss(t, newTries(t), seed, rounds, check)
}

// EveryKillThenPowerLoss kills the recorded run after each of its calls, runs again
// on what is left, and lets the power fail at each point of that second run. It finds
// what a program wrongly takes for durable because an earlier process, killed before
// its sync, left it there; neither kills nor power losses alone show that. again may
// be the recorded run or a recovery; [Record] records it. Promised covers both runs.
func EveryKillThenPowerLoss(t *testing.T, rec *Recording, again func(dir string), seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	everyKillThenPowerLoss(t, rec, func(t testing.TB, dir string) *Recording {
		return Record(t, dir, func() { again(dir) })
	}, seed, rounds, check)
}

func everyKillThenPowerLoss(t *testing.T, rec *Recording, again func(testing.TB, string) *Recording, seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	rec.verify(t)
	img := rec.Before.moved(rec.Before.root)
	tries := newTries(t)
	for made := 0; made <= len(rec.Ops); made++ {
		if made > 0 {
			apply(t, img, rec.Ops[made-1])
		}
		tries.run("killed-after-"+label(made, rec.Ops), func(t *testing.T) {
			dir := tempDir(t)
			img.Write(t, dir)
			second := again(t, dir)
			second.Before = img.moved(dir)
			for _, text := range rec.Promised(made) {
				second.promises = append(second.promises, promise{0, text})
			}
			second.everyPowerLoss(t, newTries(t), seed, rounds, check)
		})
	}
}

func (r *Recording) everyPowerLoss(t *testing.T, tries *tries, seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	r.verify(t)
	img := r.Before.moved(r.Before.root)
	for made := 0; made <= len(r.Ops); made++ {
		if made > 0 {
			apply(t, img, r.Ops[made-1])
		}
		if !tries.due() {
			continue
		}
		seen := map[string]bool{}
		for _, m := range mixtures(img, seed, made, rounds) {
			key := fmt.Sprintf("%q", m.img.Files())
			if seen[key] {
				continue
			}
			seen[key] = true
			tries.must(label(made, r.Ops)+"-"+m.name, func(t *testing.T) {
				dir := tempDir(t)
				m.img.Write(t, dir)
				t.Cleanup(func() { m.explain(t, seed) })
				check(t, Crash{Dir: dir, Made: made, Ops: r.Ops, Promised: r.Promised(made)})
			})
		}
	}
}

// verify checks that the calls explain what the run did to the directory.
func (r *Recording) verify(t testing.TB) {
	t.Helper()
	img := r.Before.All()
	for _, op := range r.Ops {
		apply(t, img, op)
	}
	names := maps.Clone(img.current)
	maps.Copy(names, r.After.current)
	same := true
	for _, name := range sortedKeys(names) {
		if model, real := excerpt(img, name), excerpt(r.After, name); model != real {
			t.Errorf("%s: the announced calls leave %s, and the run left %s", name, model, real)
			same = false
		}
	}
	if !same {
		t.Fatal("crash: the run changed the directory otherwise than through package disk")
	}
}

// excerpt identifies a file's content by a hash, and shows its beginning.
func excerpt(img *Image, name string) string {
	file := img.current[name]
	if file == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d bytes %.200q (CRC %08x)", len(file.current), file.String(), crc32.ChecksumIEEE(file.current))
}

func apply(t testing.TB, img *Image, op disk.Op) {
	t.Helper()
	if err := img.Apply(op); err != nil {
		t.Fatal(err)
	}
}

// mixture is one possible result of a power loss.
type mixture struct {
	name string
	img  *Image
}

func (m mixture) explain(t testing.TB, seed uint64) {
	if !t.Failed() {
		return
	}
	t.Logf("seed %d; the power loss left:", seed)
	for _, name := range sortedKeys(m.img.current) {
		t.Logf("  %s: %s", name, excerpt(m.img, name))
	}
}

func mixtures(img *Image, seed uint64, made, rounds int) []mixture {
	if rounds == OnlySynced {
		return []mixture{{"worst", img.Worst()}}
	}
	all := []mixture{
		{"worst", img.Worst()},
		{"all", img.All()},
		{"names", img.NamesAlone()},
		{"lengths", img.LengthsAlone()},
		{"contents", img.ContentsAlone()},
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(made)<<32|uint64(round)))
		all = append(all, mixture{fmt.Sprintf("random%d", round), img.Random(rng)})
	}
	return all
}

// label names a point of a run for the name of a subtest.
func label(made int, ops []disk.Op) string {
	if made == 0 {
		return "000-start"
	}
	op := ops[made-1]
	return fmt.Sprintf("%03d-%s-%s", made, op.Kind, filepath.Base(op.Path))
}

// EveryNth thins all rounds out: each test makes only every n-th try, beginning at one
// that depends on the test's name, so that many tests together cover every kind. The
// undisturbed run is always made. Set it before any test runs.
var EveryNth = 1

// tries runs subtests until too many of them have failed.
type tries struct {
	t      *testing.T
	failed int
	next   int // how many tries to skip before the next one
}

// maxFailed bounds the output: what is wrong at one point is often wrong at all later
// ones.
const maxFailed = 5

func newTries(t *testing.T) *tries {
	name := crc32.ChecksumIEEE([]byte(t.Name()))
	return &tries{t: t, next: int(name % uint32(EveryNth))}
}

func (tr *tries) run(name string, f func(*testing.T)) {
	tr.t.Helper()
	if tr.due() {
		tr.must(name, f)
	}
}

// due reports whether the next try is to be made.
func (tr *tries) due() bool {
	if tr.next--; tr.next >= 0 {
		return false
	}
	tr.next = EveryNth - 1
	return true
}

// must is run for a try that is never skipped.
func (tr *tries) must(name string, f func(*testing.T)) {
	tr.t.Helper()
	if !tr.t.Run(name, f) {
		tr.failed++
	}
	if tr.failed == maxFailed {
		tr.t.Fatalf("crash: stopping after %d failures", maxFailed)
	}
}
