package script

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

// cmdQueue appends lines to the inbox, as `echo >>` does: `queue LINE...`.
func cmdQueue(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) > 0, "queue LINE...")
	for _, line := range args {
		appendTo(ts, ts.Getenv("INBOX"), []byte(line+"\n"), os.O_APPEND)
	}
}

// cmdAppend appends bytes: `append FILE BYTES`, with \n, \r, \t, \\ and \xHH.
func cmdAppend(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "append FILE BYTES")
	appendTo(ts, args[0], unescape(ts, args[1]), os.O_APPEND)
}

// cmdWrite truncates a file in place and writes bytes, as `>` does: `write FILE BYTES`.
func cmdWrite(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "write FILE BYTES")
	appendTo(ts, args[0], unescape(ts, args[1]), os.O_TRUNC)
}

func appendTo(ts *testscript.TestScript, path string, b []byte, how int) {
	f, err := os.OpenFile(ts.MkAbs(path), os.O_WRONLY|os.O_CREATE|how, 0o600)
	ts.Check(err)
	_, err = f.Write(b)
	ts.Check(err)
	ts.Check(f.Close())
}

func unescape(ts *testscript.TestScript, s string) (b []byte) {
	for s != "" {
		if s[0] != '\\' {
			b, s = append(b, s[0]), s[1:]
			continue
		}
		r, _, rest, err := strconv.UnquoteChar(s, 0)
		ts.Check(err)
		b, s = append(b, byte(r)), rest
	}
	return b
}

// cmdFill writes a line of N bytes and a newline: `fill FILE N`.
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "fill FILE N")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	line := bytes.Repeat([]byte("0123456789abcde-"), n/16+1)[:n]
	appendTo(ts, args[0], append(line, '\n'), os.O_APPEND)
}

// cmdTimes sets both of a file's times, in seconds from now: `times FILE SECONDS`.
func cmdTimes(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "times FILE SECONDS")
	d, err := time.ParseDuration(args[1] + "s")
	ts.Check(err)
	at := time.Now().Add(d)
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), at, at))
}

// records reads a file of JSON lines. A missing file has none.
func records(ts *testscript.TestScript, file string) []gjson.Result {
	if file != "stdout" {
		if _, err := os.Stat(ts.MkAbs(file)); os.IsNotExist(err) {
			return nil
		}
	}
	var all []gjson.Result
	for line := range strings.Lines(ts.ReadFile(file)) {
		if !gjson.Valid(line) || !strings.HasSuffix(line, "\n") && filepath.Base(file) != ".in-flight" {
			ts.Fatalf("%s: not a line of JSON: %q", file, line)
		}
		all = append(all, gjson.Parse(line))
	}
	return all
}

// cmdLines checks how many JSON lines a file has: `lines FILE N`.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "lines FILE N")
	if all := records(ts, args[0]); strconv.Itoa(len(all)) != args[1] {
		ts.Fatalf("%s has %d lines, want %s: %v", args[0], len(all), args[1], all)
	}
}

// cmdJSON checks a member of a JSON line: `json FILE LINE PATH VALUE`, or `! json FILE
// LINE PATH` if there must be none. LINE counts from 0, or from the end if negative.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg != (len(args) == 3) || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: json FILE LINE PATH VALUE, or ! json FILE LINE PATH")
	}
	all := records(ts, args[0])
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(all)
	}
	if at < 0 || at >= len(all) {
		ts.Fatalf("%s has only %d lines", args[0], len(all))
	}
	found := all[at].Get(args[2])
	switch {
	case neg && found.Exists():
		ts.Fatalf("%s is %s, want none", args[2], found.Raw)
	case !neg && !equals(found, args[3]):
		ts.Fatalf("%s is %q, want %q in %s", args[2], found.Raw, args[3], all[at].Raw)
	}
}

// cmdTexts checks one member in all lines, in order: `texts FILE PATH VALUE...`.
func cmdTexts(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "texts FILE PATH VALUE...")
	var got []string
	for _, r := range records(ts, args[0]) {
		got = append(got, r.Get(args[1]).String())
	}
	if !slices.Equal(got, args[2:]) {
		ts.Fatalf("%s of %s: %q, want %q", args[1], args[0], got, args[2:])
	}
}

// cmdSame checks that a file consists of these bytes: `same FILE BYTES`.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "same FILE BYTES")
	if got, want := ts.ReadFile(args[0]), string(unescape(ts, args[1])); got != want {
		ts.Fatalf("%s is %q, want %q", args[0], got, want)
	}
}

// cmdKeeps checks that a file is another one with bytes inserted: `keeps FILE BEFORE`.
func cmdKeeps(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "keeps FILE BEFORE")
	now, before := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	for i := range len(now) {
		if before != "" && before[0] == now[i] {
			before = before[1:]
		}
	}
	if before != "" {
		ts.Fatalf("%s lost %q", args[0], before)
	}
}

// cmdSnapshot remembers what is in a directory: `snapshot NAME [DIR]`.
func cmdSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1 || len(args) == 2, "snapshot NAME [DIR]")
	// Not in the environment: there a variable has room for 128 KiB.
	ts.Check(os.MkdirAll(filepath.Dir(snapshotOf(ts, args[0])), 0o755))
	ts.Check(os.WriteFile(snapshotOf(ts, args[0]), fmt.Appendf(nil, "%q", look(ts, args[1:])), 0o600))
}

// cmdUnchanged checks that a directory has not changed since the snapshot: `[!]
// unchanged NAME [DIR]`. The lock file, which contains nothing, may be new.
func cmdUnchanged(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, false, len(args) == 1 || len(args) == 2, "[!] unchanged NAME [DIR]")
	before, now := ts.ReadFile(snapshotOf(ts, args[0])), fmt.Sprintf("%q", look(ts, args[1:]))
	if neg == (before == now) {
		ts.Fatalf("changed is %v:\nbefore %s\nnow    %s", !neg, before, now)
	}
}

func snapshotOf(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("WORK"), ".tmp", "snapshot-"+name)
}

// look lists the files below a directory with their contents and times.
func look(ts *testscript.TestScript, dir []string) (all []string) {
	root := ts.MkAbs(strings.Join(append(dir, "."), "/"))
	found := map[string]string{}
	ts.Check(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".tmp":
			return filepath.SkipDir
		case e.Name() == ".inbox-lock" || e.IsDir():
			return nil
		case !e.Type().IsRegular():
			found[path] = e.Type().String()
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ", string(bytes.Trim(content, "\x00")))
		return err
	}))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		all = append(all, filepath.Base(path)+": "+found[path])
	}
	return all
}
