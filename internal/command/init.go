package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/doctor"
	"heartbeat/internal/disk"
	"heartbeat/internal/launch"
	"heartbeat/internal/words"
)

// initFlags are the flags of init, and what is known before it writes.
type initFlags struct {
	inbox    string // as given
	named    bool
	launcher bool
	undo     bool

	project string // the working directory
	path    string // the inbox's
	dir     string // its folder
	made    made
}

var initVerb = cli.Verb{
	Name:  "init",
	Short: "set a project up: folder, hook",
	Long: `Set up the project in this directory: make the inbox's folder (work, if no inbox
is named), with a .gitignore in it by which git leaves it alone, wire the hook into
.claude/settings.json as install does, check all of it as doctor does, and say what
to type next. With --launcher no settings are changed: heartbeat launch wires the
hook for each session.

A folder that is there already stays as it is, and so does a hook that serves the
inbox. Everything is checked before anything is written. Running init again changes
nothing, or does what a killed one left undone.

--undo takes back what init made, and nothing else: a folder that holds anything,
such as an inbox with entries, stays.

Exit status: 0 it is set up, whatever the checks say; 1 it is not.`,
	Example: `heartbeat init
heartbeat init --launcher
heartbeat init --undo`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &initFlags{}
		cli.AddNamedInbox(f, &o.inbox)
		f.Lookup("inbox").Usage += "; " + cli.DefaultInbox + " without it"
		f.BoolP("yes", "y", false, "") // of earlier releases
		f.Lookup("yes").Hidden = true
		f.BoolVar(&o.launcher, "launcher", false, "wire no hook: sessions are started by heartbeat launch")
		f.BoolVar(&o.undo, "undo", false, "take back what init made")
		return func(_ []string, s cli.Streams) error {
			o.named = o.inbox != ""
			return o.run(s)
		}
	},
}

func (o *initFlags) run(s cli.Streams) error {
	if o.undo && o.launcher {
		return cli.Usage(errors.New("--undo takes back what init has recorded: leave --launcher out"))
	}
	unlock, err := o.begin()
	if err == nil {
		defer unlock()
		if o.undo {
			err = o.takeBack(s)
		} else {
			err = o.setUp(s)
		}
	}
	return wrap("init", err)
}

// begin checks where init runs, and keeps other inits out until unlock.
func (o *initFlags) begin() (unlock func(), err error) {
	o.inbox = cmp.Or(o.inbox, cli.DefaultInbox)
	if strings.HasSuffix(o.inbox, string(filepath.Separator)) {
		return nil, fmt.Errorf("%s is a folder: name the inbox's file in it", o.inbox)
	}
	if o.project, err = os.Getwd(); err != nil {
		return nil, err
	}
	if o.path, err = filepath.Abs(o.inbox); err != nil {
		return nil, err
	}
	o.dir = filepath.Dir(o.path)
	if strings.HasPrefix(filepath.Base(o.dir), "~") {
		return nil, fmt.Errorf("the inbox's folder would be %s: only a shell turns ~ into your home directory: write the path out", o.dir)
	}
	if err := cmp.Or(checkOwner(o.project, runAsOwner), checkOwner(filepath.Dir(o.dir), runAsOwner)); err != nil {
		return nil, err
	}
	// The folder itself is locked, so that no lock file is left.
	f, err := os.Open(o.project)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another heartbeat init is at work in %s: let it end, then run this again", o.project)
		}
		return nil, fmt.Errorf("lock %s: %w", o.project, err)
	}
	return func() { _ = f.Close() }, nil
}

const runAsOwner = "run init as its owner" // the remedy of [checkOwner]: init makes files as the current user

// checkOwner returns an error, with its remedy, if dir belongs to another user.
func checkOwner(dir, remedy string) error {
	info, err := disk.StatDir(dir)
	if err != nil {
		return err
	}
	if int(info.UID) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and you are user %d: %s", dir, info.UID, os.Geteuid(), remedy)
	}
	return nil
}

// setUp checks everything before it writes anything.
func (o *initFlags) setUp(s cli.Streams) error {
	var err error
	if o.made, err = o.readMade(); err != nil {
		return err
	}
	before := o.made
	there, err := disk.Exists(o.dir)
	if info, _ := disk.StatName(o.dir); there && !info.IsDir && o.inbox == cli.DefaultInbox {
		err = fmt.Errorf("%s is a link, and no command looks for an inbox behind one: put a folder there, or name an inbox with --inbox and "+cli.InboxVariable, o.dir)
	} else if err == nil && there {
		if err = checkOwner(o.dir, runAsOwner); err == nil && !o.named {
			err = launch.CheckForeign(o.path)
		}
	}
	if err != nil {
		return err
	}
	o.made.Folder, o.made.Project = o.made.Folder || !there, o.project
	var wired func() error
	if !o.launcher {
		if wired, err = o.planHook(s); err != nil {
			return err
		}
	}
	changed := !there || o.made != before
	if changed {
		err = o.write(there, s)
	}
	if err == nil {
		err = o.ignore(s)
	}
	switch {
	case err != nil:
	case wired != nil:
		err = wired()
	case !changed:
		_, err = fmt.Fprintf(s.Out, "%s is set up already: nothing was changed\n", o.project)
	}
	if err != nil {
		return err
	}
	return o.report(s)
}

// planHook returns the step that wires the hook, nil for none.
func (o *initFlags) planHook(s cli.Streams) (step func() error, err error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) == o.project {
		return nil, fmt.Errorf("%s is your home directory, whose settings are those of all projects: go to the project first, or add --launcher", home)
	}
	path, w, err := o.wiring()
	if err != nil {
		return nil, err
	}
	if err := checkLasting(w.Command); err != nil {
		return nil, err
	}
	for _, name := range []string{filepath.Dir(path), path} {
		if target, err := os.Readlink(name); err == nil {
			return nil, fmt.Errorf("%s is a symbolic link to %s, and init edits no file elsewhere: run heartbeat install --follow-links, then heartbeat init --launcher", name, target)
		}
	}
	edit := settings.InstallFile(path, w, settings.RefuseLinks)
	content, after, err := edit.Preview()
	if err != nil || bytes.Equal(content, after) {
		return nil, err
	}
	wired, same := w.In(content)
	if !same {
		s.Note("%s serves this inbox already, with settings of its own: it stays as it is (heartbeat install changes it)", path)
		return nil, nil
	}
	o.made.Hook = o.made.Hook || !wired
	return func() error {
		if _, err := edit.Write(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.Out, "wired %s into %s\n", w.Command, path)
		return err
	}, nil
}

// wiring returns the file and the wiring of install without other flags.
func (o *initFlags) wiring() (path string, w settings.Wiring, err error) {
	as := &installFlags{verb: "install", scope: string(settings.Project)}
	if o.undo {
		as.verb = "uninstall"
	}
	as.hook = as.wired.Set()
	as.wired.Inbox = o.path
	if w, err = as.wiring(); err == nil {
		path, err = as.path()
	}
	return path, w, err
}

// ignoring is the .gitignore of the inbox's folder.
const ignoring = "# The inbox of heartbeat: git leaves this folder alone.\n*\n"

// write makes the folder, and records in it what init is about to make, so that --undo knows it after a kill.
func (o *initFlags) write(there bool, s cli.Streams) error {
	if !there {
		if err := disk.MakeDir(o.dir); err != nil {
			return fmt.Errorf("make the inbox's folder: %w", err)
		}
	}
	text, err := json.Marshal(o.made)
	if err == nil {
		err = disk.Publish(o.madeFile(), append(text, '\n'), true)
	}
	if err == nil && !there {
		_, err = fmt.Fprintf(s.Out, "made the folder %s\n", o.dir)
	}
	return err
}

// ignore makes git ignore a folder that init made. For another folder it notes what to do.
func (o *initFlags) ignore(s cli.Streams) error {
	path := filepath.Join(o.dir, ".gitignore")
	there, err := disk.Exists(path)
	switch {
	case err != nil || there:
		return err
	case o.made.Folder:
		return disk.Publish(path, []byte(ignoring), false)
	case launch.WorkTree(o.dir) != "":
		s.Note("the folder was there and stays as it is: if git does not ignore it yet, echo '*' > %s", words.Shell(path))
	}
	return nil
}

// report prints which checks are not ok, and what to type next.
func (o *initFlags) report(s cli.Streams) error {
	checks := &doctorFlags{inbox: o.inbox, project: "."}
	in, err := checks.input()
	if err != nil {
		return fmt.Errorf("check it: %w", err)
	}
	in.Launched = o.launcher
	all := doctor.Run(in)
	bad := doctor.Amiss(all)
	if _, err := fmt.Fprintf(s.Out, "checked: %d of %d checks are ok\n", len(all)-len(bad), len(all)); err != nil {
		return err
	}
	if err := doctor.WriteText(checks.display(s.Out).Output, bad); err != nil {
		return err
	}
	named := "" // the default inbox needs no flag
	if o.path != filepath.Join(o.project, cli.DefaultInbox) || os.Getenv(cli.InboxVariable) != "" {
		named = " --inbox " + words.Shell(o.inbox)
	}
	_, err = fmt.Fprintf(s.Out, "next:\n  %s\n", strings.Join(nextSteps(named), "\n  "))
	return err
}

func firstSteps(between string) string {
	return strings.Join(append([]string{"heartbeat init"}, nextSteps("")...), between)
}

// nextSteps returns what to type once a project is set up. named is a flag for the inbox, "" if none is needed.
func nextSteps(named string) []string {
	return []string{
		"heartbeat send" + named + ` "Name three cats."`,
		"heartbeat launch" + named + ` -- claude "Say ready."`,
		"heartbeat results" + named,
	}
}
