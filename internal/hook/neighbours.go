package hook

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

const (
	// flushWait is how long after a hook's end its decision may take to reach the transcript. Measured: a tenth of a
	// second, more on a busy machine. A decision that comes even later makes an answer contested.
	flushWait = 500 * time.Millisecond
	gatePoll  = 25 * time.Millisecond
	// summaryWait is how long a hook in the background, for which nobody waits, gives the client to write the summary
	// of the Stop.
	summaryWait = 10 * time.Second
	// The hooks of one Stop start at the same moment, give or take these seconds on a busy machine.
	startsBefore, startsAfter = 1, 5
	// maxSettings bounds a settings file. summaryWithin is how much of the transcript's end is searched for the summary
	// of the Stop before. In bytes.
	maxSettings, summaryWithin = 1 << 20, 8 << 10
)

// gate is the outcome of waiting for the other Stop hooks.
type gate struct {
	shut   bool // one of them ended the session: nothing more is delivered
	unsure bool // the transcript may yet show what one of them decided
	from   int64
}

// othersContinue waits, without the inbox's lock, until the other hooks of this Stop have ended. It reports whether one of
// them continues the turn, whose last Stop is then yet to come.
func (h *hook) othersContinue() bool {
	pid := h.clientPID()
	if h.GateTimeout == 0 || pid == 0 || !h.client().LogsHooks {
		return false
	}
	others := h.otherHooks(pid)
	if !others.Any() {
		return false
	}
	h.gate.from = claude.TranscriptSize(h.input.TranscriptPath) // 0 before the client has written it
	own := childOf(pid)
	others.Without(commandLineOf(own))
	if !others.Any() {
		return false
	}
	report := h.awaitOthers(&siblings{client: pid, start: machine.ProcessStart(pid), own: own, since: machine.ProcessStart(own), hooks: others})
	h.gate.shut, h.gate.unsure = report.Ended, !report.Over
	report.Blocks = slices.DeleteFunc(report.Blocks, h.isDelivered)
	if report.Ended || len(report.Blocks) == 0 {
		return false
	}
	h.noteOthers("another Stop hook has the turn go on, so it is not over: %s", words.Sentence(words.Brief(report.Blocks[0])))
	return true
}

// isDelivered reports whether a text is that of the entry in flight, which precedes the turn's answer in a transcript
// where the client may not have written that answer yet.
func (h *hook) isDelivered(text string) (is bool) {
	h.withView(func(view *inbox.View) { is = h.isTextOf(view.InFlight(), text) })
	return is
}

func (h *hook) isTextOf(d *inbox.Delivery, text string) bool {
	if d == nil {
		return false
	}
	own := strings.TrimSpace(recovery.EvidenceOf(d).Handed(d))
	return own != "" && strings.HasSuffix(strings.TrimSpace(text), own)
}

// noteOthers notes a sentence unless the hook runs in the background, where notes may become part of the text that wakes
// the session.
func (h *hook) noteOthers(format string, args ...any) {
	if !h.Rewake {
		h.Note(format, args...)
	}
}

// awaitOthers returns what the other hooks decided, once they have ended or nothing more can be known.
func (h *hook) awaitOthers(s *siblings) claude.StopReport {
	limit, reply := time.Duration(h.GateTimeout), h.input.LastMessage
	if !h.Rewake { // the client waits for this hook, and no longer than this
		limit, reply = min(limit, h.lockWait()), ""
	}
	transcript := claude.NewStopReader(h.input.TranscriptPath, reply)
	began, over := h.age(), false
	for quiet := began; ; time.Sleep(gatePoll) {
		running := s.running()
		transcript.Read()
		report, now := transcript.StopReport, h.age()
		if report.Over && !h.Rewake {
			report = claude.StopReport{} // the summary is that of the Stop before, since this hook still runs
		}
		if running != "" && !report.Over || report.Over && !over {
			quiet = now
		}
		over = report.Over
		unseen := s.hooks.Judges || slices.ContainsFunc(s.hooks.Servers, func(url string) bool { return !report.Heard(url) })
		switch {
		case report.Over && now-quiet >= flushWait: // an earlier one may be that of the Stop before, or be overridden yet
			return report
		case now >= limit && running != "":
			h.noteOthers("another Stop hook still runs after %s, and is waited for no longer: %s", words.Took(now), words.Brief(running))
			return report
		case running != "" || now-quiet < flushWait:
		case len(report.Blocks) > 0 || report.Ended || claude.TranscriptSize(h.input.TranscriptPath) == 0: // nothing would show
			return report
		case h.Rewake && now-quiet < min(limit, summaryWait):
		case !unseen || now >= min(limit, time.Duration(h.GateUnseen)):
			return report
		}
	}
}

// otherHooks returns the Stop hooks that the client's settings wire and those that ran at the Stop before, without this
// one.
func (h *hook) otherHooks(client int) *claude.StopHooks {
	s := new(claude.StopHooks)
	read := func(path, root string) {
		text, err := disk.ReadFile(path, maxSettings)
		switch {
		case err == nil:
			s.Read(text, root)
		case errors.Is(err, disk.ErrTooLarge):
			s.Commands = append(s.Commands, "?"+path) // nobody knows what it wires
		}
	}
	config := cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(os.Getenv("HOME"), ".claude"))
	project := filepath.Join(os.Getenv("CLAUDE_PROJECT_DIR"), ".claude")
	managed := "/etc/claude-code"
	if runtime.GOOS == "darwin" {
		managed = "/Library/Application Support/ClaudeCode"
	}
	read(filepath.Join(config, "settings.json"), "")
	read(filepath.Join(project, "settings.json"), "")
	read(filepath.Join(project, "settings.local.json"), "")
	if is, _ := disk.Exists(managed); is { // most machines have none
		read(filepath.Join(managed, "managed-settings.json"), "")
		names, _, _ := disk.Names(filepath.Join(managed, "managed-settings.d"), 100)
		for _, name := range names {
			read(filepath.Join(managed, "managed-settings.d", name), "")
		}
	}
	args := machine.Arguments(client)
	for _, given := range valuesOf(args, "--settings") {
		if strings.HasPrefix(strings.TrimSpace(given), "{") {
			s.Read([]byte(given), "")
		} else {
			read(given, "")
		}
	}
	roots := valuesOf(args, "--plugin-dir")
	if len(s.Plugins) > 0 {
		roots = append(roots, installed(filepath.Join(config, "plugins", "installed_plugins.json"), s.Plugins)...)
	}
	for _, root := range roots {
		read(filepath.Join(root, "hooks", "hooks.json"), root)
		read(filepath.Join(root, ".claude-plugin", "plugin.json"), root)
	}
	s.ReadSummary(endOf(h.input.TranscriptPath))
	return s
}

func endOf(transcript string) []byte {
	f, err := disk.OpenForeign(transcript, unix.O_RDONLY)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	size := f.Info().Size
	b := make([]byte, min(size, summaryWithin))
	n, err := f.ReadAt(b, size-int64(len(b)))
	if err != nil {
		return nil
	}
	return b[:n]
}

// installed returns where the client keeps these plugins.
func installed(list string, plugins []string) (roots []string) {
	text, err := disk.ReadFile(list, maxSettings)
	if err != nil {
		return nil
	}
	for _, name := range plugins {
		for _, place := range flat.Value(text).Get("plugins", name).Items() {
			roots = append(roots, place.Get("installPath").Text())
		}
	}
	return roots
}

func valuesOf(args []string, option string) (all []string) {
	for i, arg := range args {
		if value, is := strings.CutPrefix(arg, option+"="); is {
			all = append(all, value)
		} else if arg == option && i+1 < len(args) {
			all = append(all, args[i+1])
		}
	}
	return all
}

// siblings are the processes of the hooks that the client started for this Stop.
type siblings struct {
	client int
	start  int64 // of the client's process
	own    int   // the client's child that this hook is, or descends from
	since  int64
	hooks  *claude.StopHooks
}

// running returns the command line of a sibling that runs, or "".
func (s *siblings) running() string {
	if machine.ProcessStart(s.client) != s.start {
		return "" // the client is gone, so no turn can continue
	}
	all := machine.List()
	for _, p := range all {
		if p.Parent != s.client || p.PID == s.own || p.Group != p.PID || p.Start < s.earliest() ||
			p.Start > s.since+startsAfter*machine.StartsPerSecond {
			continue
		}
		line := commandLineOf(p.PID)
		if environ := machine.Environ(p.PID); len(environ) > 0 && !isHook(environ) || s.hooks.InBackground(line) || s.isOwnBelow(all, p.PID) {
			continue
		}
		return line
	}
	return ""
}

// isHook reports whether a process with this environment was started as a hook. A tool server has only the second
// variable, and a command in the background only the first.
func isHook(environ []string) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	return has("CLAUDE_PID") && has("CLAUDE_PROJECT_DIR")
}

func (s *siblings) earliest() int64 { return s.since - startsBefore*machine.StartsPerSecond }

// isOwnBelow reports whether a process is a hook of heartbeat's, or one of these descends from it. Two hooks would wait
// for each other.
func (s *siblings) isOwnBelow(all []machine.Entry, pid int) bool {
	return slices.ContainsFunc(all, func(p machine.Entry) bool {
		return p.Start >= s.earliest() && claude.IsOwn(commandLineOf(p.PID)) && machine.Nearest(p.PID, func(q int) bool { return q == pid }) != 0
	})
}

// childOf returns the client's child that this process is, or descends from.
func childOf(client int) int {
	child := os.Getpid()
	if machine.Nearest(child, func(p int) bool {
		if p != client {
			child = p
		}
		return p == client
	}) == 0 {
		return os.Getpid()
	}
	return child
}

func commandLineOf(pid int) string { return strings.Join(machine.Arguments(pid), " ") }

// doubt returns what [hook.objection] needs to decide whether another hook objected to an answer. own is the text that
// this Stop delivers, or "".
func (h *hook) doubt(own string) []byte {
	var o flat.Object
	o.Text("transcript", h.input.TranscriptPath)
	o.Int("from", h.gate.from)
	if own != "" {
		o.String("own", claude.ReplySum(own))
	}
	return o.End()
}

// objection returns the texts with which other hooks continued the turn, "" for none, at the Stop whose answer is in
// doubt. inFlight is what a later poll of that Stop delivered. known is false while the client has not written its summary
// of that Stop, which may still be this one.
func (h *hook) objection(doubt *inbox.Doubt, inFlight *inbox.Delivery) (texts string, known bool) {
	note, err := flat.Parse(doubt.Note)
	if err != nil {
		return "", true
	}
	all, known := claude.Objections(note.String("transcript"), note.Int("from"), note.String("own"))
	all = slices.DeleteFunc(all, func(text string) bool { return h.isTextOf(inFlight, text) })
	return strings.Join(all, "; "), known
}
