package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

func directory(e *examination) string {
	dir := filepath.Dir(e.inbox)
	info, err := disk.StatDir(dir)
	switch access := disk.MayWrite(dir, inbox.LockName); {
	case errors.Is(err, fs.ErrNotExist):
		e.fail(cmp.Or(e.rewire(), quote("mkdir", "-p", "-m", "700", dir)), "%s does not exist", dir)
	case err != nil:
		e.unseen("name an inbox in a directory that this user can search", err)
	case errors.Is(access, unix.EROFS):
		e.fail("see the system's log for its errors, and mount it writable", "the file system of %s is read-only: nothing can be delivered", dir)
	case access != nil:
		fix := quote("chmod", "u+rwx", dir)
		if info.UID != uint32(os.Geteuid()) {
			fix = asOwner(info.UID)
		}
		e.fail(fix+", or choose another directory",
			"user %d may not make files in %s (mode %04o, owner %d): %v", os.Geteuid(), dir, info.Mode, info.UID, access)
	case disk.OthersWrite(info):
		e.warn(quote("chmod", "go-w", dir), "others may make and replace files in %s (mode %04o): whoever can do that instructs the agent and forges its state, "+
			"and heartbeat-launch refuses it without --shared", dir, info.Mode)
	}
	return fmt.Sprintf("%s belongs to user %d, mode %04o", dir, info.UID, info.Mode)
}

// inboxFile opens the inbox as the hook does.
func inboxFile(e *examination) string {
	f, err := disk.OpenForeign(e.inbox, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return e.inbox + " is not there yet: the first entry creates it"
	}
	if err != nil {
		return e.fail("have the inbox be a file that this user may read (if it is one, "+quote("chmod", "u+r", e.inbox)+")", "%v", err)
	}
	info := f.Info()
	if named, err := disk.StatFile(e.inbox); err == nil && disk.OthersWrite(named) {
		e.warn(quote("chmod", "go-w", e.inbox), "others may write to %s (mode %04o): whoever can write to the inbox can instruct the agent", e.inbox, info.Mode)
	}
	if err := f.Close(); err != nil {
		e.unseen("see the file system", err)
	}
	return fmt.Sprintf("%s is a regular file of %s, mode %04o", e.inbox, words.Size(info.Size), info.Mode)
}

// stateFiles opens the files beside the inbox as the hook does, and changes nothing.
func stateFiles(e *examination) string {
	found := 0
	for _, name := range inbox.StateNames() {
		path := e.beside(name)
		f, err := disk.OpenRead(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found++
		if err == nil {
			err = errors.Join(unix.Access(path, unix.W_OK), f.Close())
		}
		if errors.Is(err, unix.EROFS) { // see directory
			continue
		}
		if err != nil {
			info, _ := disk.StatName(path) // zeros stand for what cannot be read
			if owner, is := e.foreignOwner(err); is && info.UID == owner {
				e.fail(asOwner(owner), "user %d may not read and write %s (mode %04o, owner %d): %v", os.Geteuid(), path, info.Mode, info.UID, err)
				continue
			}
			fix := "see who made it, then take it away"
			if errors.Is(err, fs.ErrPermission) { // chmod of a link would change another file
				fix += ", or: " + quote("chmod", "600", path)
			}
			e.fail(fix, "the hook refuses %s (mode %04o, owner %d): %v", path, info.Mode, info.UID, err)
			continue
		}
		switch info := f.Info(); {
		case info.Links > 1:
			e.warn(quote("cp", "-p", path, path+".new")+" && "+quote("mv", path+".new", path)+", while no session runs",
				"%s has %d names: what is written to it is in the other file as well, so that a copy made with cp -al is no backup", path, info.Links)
		case info.Mode != 0o600:
			e.warn(quote("chmod", "600", path), "%s has mode %04o: it holds prompts and replies, and is made with 0600", path, info.Mode)
		}
	}
	if found == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %s: regular files, mode 0600, of the right user", found, filepath.Dir(e.inbox))
}

// foreignOwner returns the owner of the inbox's directory, and whether a permission is missing because that is another
// user. Nothing is wrong with the files then, and nobody should take them away.
func (e *examination) foreignOwner(err error) (owner uint32, is bool) {
	info, failed := disk.StatDir(filepath.Dir(e.inbox))
	return info.UID, failed == nil && errors.Is(err, fs.ErrPermission) && info.UID != uint32(os.Geteuid())
}

func asOwner(owner uint32) string { return fmt.Sprintf("look at it as user %d, who owns it", owner) }

const littleSpace = 64 << 20 // the free space, in bytes, below which a warning is due

func fileSystem(e *examination) string {
	dir := filepath.Dir(e.inbox)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return e.unseen("see the line about the directory", fmt.Errorf("statfs %s: %w", dir, err))
	}
	left, needed := int64(-1), int64(0)
	if e.box != nil {
		left, needed = e.box.Room()
	}
	return e.checkFileSystem(dir, st, left, needed)
}

// farAway names the file systems, by Linux's magic numbers, on which a lock and a sync promise less than on a local one.
var farAway = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xfe534d42: "SMB", 0xff534d42: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
	0x00c36400: "Ceph", 0x5346414f: "AFS", 0x6b414653: "AFS", 0x73757245: "Coda",
}

// inMemory are the magic numbers of file systems that a restart empties.
var inMemory = []uint32{0x01021994, 0x858458f6}

const readOnly = 1 // the mount flag of a read-only file system, on Linux and on macOS

func (e *examination) checkFileSystem(dir string, st unix.Statfs_t, free, needed int64) string {
	const elsewhere = "choose an inbox on a local disk"
	kind := uint32(st.Type)
	if name := farAway[kind]; name != "" {
		e.warn(elsewhere, "%s is on %s, where a lock and a sync promise less than on a local disk", dir, name)
	} else if slices.Contains(inMemory, kind) {
		e.warn(elsewhere, "%s is in memory (tmpfs), which a restart empties: queue, results and dead letters are gone then", dir)
	}
	if st.Flags&readOnly != 0 {
		e.fail(elsewhere+", or mount this one writable", "%s is mounted read-only", dir)
	}
	left := words.Size(free) + " left"
	switch full := disk.TakesFile(dir, needed); {
	case free < 0: // the file system does not tell
		left = "room"
	case free < needed:
		e.fail("make space, or remove files", "%s has %s, or no inode: nothing can be committed", dir, left)
	case full != nil:
		e.fail("remove files, or have the quota raised", "%s takes no more from this user, with %s: nothing can be committed: %v", dir, left, full)
	case free < littleSpace:
		e.warn("make space", "%s has %s", dir, left)
	}
	return fmt.Sprintf("%s is on a local file system with %s", dir, left)
}

const fresh = time.Minute // how long a temporary file may belong to a running hook

func leftovers(e *examination) string {
	names, _, err := disk.Names(e.box.Dir(), math.MaxInt)
	var forgotten []string
	if err == nil {
		forgotten, err = e.box.Leftovers()
	}
	if err != nil {
		return e.unseen("let this user read the directory, and see the lines about its files", err)
	}
	isOld := func(path string) bool {
		info, err := disk.StatName(path)
		return err == nil && e.Now.UnixNano()-info.Mtime > fresh.Nanoseconds()
	}
	var copies []string // of lines that were too long
	slices.Sort(names)
	for _, name := range names {
		half, cut := strings.CutSuffix(name, ".tmp")
		path := e.beside(name)
		if cut && slices.Contains(inbox.StateNames(), strings.TrimSuffix(half, ".trim")) && isOld(path) {
			e.warn(quote("rm", path), "%s was left by a command that was killed: nothing is lost with it, and the next such write removes it", path)
		}
		if strings.HasPrefix(name, ".dead-letter-") && strings.HasSuffix(name, ".raw") {
			copies = append(copies, path)
		}
	}
	for _, name := range forgotten {
		if path := e.beside(name); isOld(path) {
			e.warn(quote("heartbeat", "compact", "--inbox", e.inbox), "%s was left by a command that was killed, or of an entry that was requeued: nothing refers to it", path)
			e.mend(forgetting)
		}
	}
	if len(copies) > 0 {
		err = eachLine(e.box.DeadLetterPath(), func(_ int64, line []byte, _ bool) {
			named := e.beside(gjson.GetBytes(line, "raw_file").String())
			copies = slices.DeleteFunc(copies, func(path string) bool { return path == named })
		})
	}
	if err != nil {
		return e.unseen("see the line about that file", err)
	}
	for _, path := range copies {
		e.warn("look into it, then remove it: "+quote(path), "%s is the copy of a line that was too long, and no line of %s names it", path, filepath.Base(e.box.DeadLetterPath()))
	}
	return "none in " + e.box.Dir()
}

func state(e *examination) string {
	v, err := e.box.View()
	if err == nil {
		err = v.Close()
	}
	switch {
	case errors.Is(err, inbox.ErrOtherInbox):
		e.fail("give each inbox a directory of its own", "%v", err)
	case err != nil:
		if owner, is := e.foreignOwner(err); is {
			e.fail(asOwner(owner), "%v", err)
			break
		}
		e.fail("correct that file, or move it away: the state goes on from the others, and without .inbox-offset the inbox is read from its start", "%v", err)
	}
	return "the state in " + e.box.Dir() + " is valid, and that of this inbox"
}

// troubles reports the inbox's troubles as status does. One that a session or a timer usually ends is shown as ok.
func troubles(e *examination) string {
	facts := see.Look(context.Background(), e.box)
	for _, t := range facts.Troubles() {
		if t.Row().Verb == "doctor" {
			t.Do = "see the other checks"
		}
		switch {
		case t.Urgency == see.Act && !t.Row().Lasts:
			e.fail(t.Do, "%s", t.Text)
		case t.Urgency == see.Act, t.Urgency != see.Passes && !t.Row().Lasts:
			e.warn(t.Do, "%s", t.Text)
		default:
			e.note(OK, "", t.Text)
		}
	}
	for _, text := range see.GoOn(facts.Runs, facts.Inbox, "") {
		e.as("run").note(OK, "", text)
	}
	return ""
}

func prices(e *examination) string {
	const fix = "see heartbeat costs --prices, and mend heartbeat/prices.toml in the folder of your settings"
	if _, err := meter.Prices(); err != nil {
		return e.warn(fix, "%v", err)
	}
	if e.box == nil {
		return ""
	}
	check := book.Check{}
	_, _ = book.Lines(e.box, func(l price.Line) { check.Add(&l) }) // other checks report the files
	if sentence := check.Sentence(); sentence != "" {
		e.warn(fix, "%s", sentence)
	}
	return ""
}

// runs checks the runs that the inbox drives, as a step would.
func runs(e *examination) string {
	driven, strange, _ := e.Driven(e.box) // the checks of the directory report the error
	for _, name := range strange {
		e.warn("remove it; or name the run's directory with --run, and a step writes it anew",
			"%s was not made by way of this inbox (an older version, a copy, a repository), so nothing is taken from it", name)
	}
	var read []string
	for _, d := range driven {
		r, err := run.Open(d.Dir)
		if err == nil {
			_, err = r.State()
		}
		switch {
		case d.Done && errors.Is(err, run.ErrNoRun): // a run that is done may be removed
		case errors.Is(err, run.ErrCorrupt):
			repair := quote("heartbeat", "orchestrate", "--inbox", e.inbox, "--run", d.Dir, "--repair", "--once")
			e.fail(repair+" (it drops what cannot be read, and keeps the old journal)", "%v", err)
		case err != nil:
			e.fail("see whether "+d.Dir+" is there and readable", "%v", err)
		default:
			read = append(read, e.show(d.Dir))
		}
	}
	if len(read) == 0 {
		return ""
	}
	return strings.Join(read, ", ") + " can be read; each step runs the code that it names, as you"
}

// babysitterWait is how long each command may take to print its version. npx may have to fetch it first.
const babysitterWait = 90 * time.Second

// babysitters checks the version of each command that drives runs of the inbox: the default one where no hook does.
func babysitters(e *examination) string {
	var commands [][]string
	var versions []string
	for _, w := range e.related("", same) {
		known := func(command []string) bool { return slices.Equal(command, w.hook.Runs.Command) }
		if w.err == nil && len(w.hook.Runs.Dirs) > 0 && !slices.ContainsFunc(commands, known) {
			commands = append(commands, w.hook.Runs.Command)
		}
	}
	if len(commands) == 0 && e.box != nil {
		if driven, _, _ := e.Driven(e.box); len(driven) > 0 {
			commands = [][]string{{effect.DefaultCommand}}
		}
	}
	for _, command := range commands {
		note := "" // about the version
		ctx, stop := context.WithTimeout(context.Background(), babysitterWait)
		cli := babysitter.CLI{Command: command, Note: func(format string, args ...any) { note = fmt.Sprintf(format, args...) }}
		version, err := cli.Version(ctx)
		stop()
		switch {
		case err != nil:
			e.fail("install it, or name it with --babysitter", "%v", err)
		case note != "":
			e.warn("install the version that it names", "%s", note)
		default:
			versions = append(versions, fmt.Sprintf("%s is version %s", words.Shell(command...), version))
		}
	}
	return strings.Join(versions, ", ")
}
