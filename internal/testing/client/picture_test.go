package client

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// pictureVariable names the file in which TestPicture leaves its recording. With it
// keys and answers take the time that a person and a model take.
const pictureVariable = "HEARTBEAT_PICTURE"

// pace is how long things take in a recording. No test depends on it.
type pace struct{ key, answer time.Duration }

const (
	// shellPrompt is nothing that the client's screen shows.
	shellPrompt = "~/agent $ "
	notes       = "The mill has four rooms.\nThe wheel turns again since May.\nNobody has the key to the third room.\n"
	summary     = "A mill with a wheel that turns, and one locked room of four."
)

// The session of the README's picture: three prompts are sent, the launcher has them
// answered, and the replies are there.
func TestPicture(t *testing.T) {
	cast, at := filepath.Join(t.TempDir(), "session.cast"), pace{}
	if path := os.Getenv(pictureVariable); path != "" {
		cast, at = path, pace{key: 25 * time.Millisecond, answer: 1200 * time.Millisecond}
	}
	w := workspace(t, Find(t), pictured(at))
	w.settleIn("agent")
	require.NoError(t, os.Mkdir(filepath.Join(w.Project, "queue"), 0o700)) // send would say where it made it
	require.NoError(t, os.WriteFile(filepath.Join(w.Project, "notes.txt"), []byte(notes), 0o600))
	ctx := minutes(t)
	shell := w.shell(cast)
	from, err := shell.WaitScreen(ctx, 0, shellPrompt)
	require.NoError(t, err)
	for _, command := range []string{
		`export HEARTBEAT_INBOX=work/inbox.jsonl`,
		`heartbeat send --id names "Suggest three names for a cat."`,
		`heartbeat send --id poem "Write two lines about the sea."`,
		`heartbeat send --id notes "Sum up notes.txt in one sentence."`,
		`heartbeat launch --inbox $HEARTBEAT_INBOX -- claude "Say ready."`,
		`heartbeat results`,
	} {
		require.NoError(t, shell.enterSlowly(ctx, command, at.key))
		from, err = shell.WaitScreen(ctx, from, shellPrompt)
		require.NoError(t, err)
	}
	_, shown, _ := strings.Cut(plain(shell.Screen()), squeeze("heartbeat results"))
	assert.Contains(t, shown, "Amill", "the beginning of the last reply")
	require.NoError(t, shell.Signal(syscall.SIGTERM))
	_, err = shell.Wait(ctx)
	require.NoError(t, err)
	assert.FileExists(t, cast)
}

// pictured is a model for the prompts of TestPicture.
func pictured(at pace) model.Script {
	return func(r model.Request) model.Reply {
		reply := model.Text("Ready.")
		switch {
		case len(r.ToolResults) > 0:
			reply = model.Text(summary)
		case strings.Contains(r.UserText, "names for a cat"):
			reply = model.Text("Miso, Pixel and Juniper.")
		case strings.Contains(r.UserText, "about the sea"):
			reply = model.Text("The tide writes one long line of foam,\nand takes it back before it is home.")
		case strings.Contains(r.UserText, "Sum up"):
			reply = model.Tool("Read", map[string]any{"file_path": "notes.txt"})
		}
		return reply.After(at.answer)
	}
}

// settleIn makes the project a folder of the home, whose path names no machine, and
// has the client skip a notice that it shows once.
func (w *Workspace) settleIn(name string) {
	w.t.Helper()
	w.Project = filepath.Join(w.Home, name)
	must(w.t, os.Mkdir(w.Project, 0o700))
	memory := w.firstRun()
	memory["hasSeenAutoDefaultNotice"] = true
	w.writeJSON(filepath.Join(w.Home, ".claude.json"), memory)
}

// shell is a recorded shell that finds the commands by their names.
func (w *Workspace) shell(cast string) *Session {
	w.t.Helper()
	launch, err := buildLaunch()
	must(w.t, err)
	stop, err := buildOnce()
	must(w.t, err)
	bin := filepath.Join(filepath.Dir(w.Home), "bin")
	must(w.t, os.Mkdir(bin, 0o700))
	for name, path := range map[string]string{
		"claude": w.binary, "heartbeat": besideHook(stop), "heartbeat-stop": stop, "heartbeat-launch": launch,
	} {
		must(w.t, os.Symlink(path, filepath.Join(bin, name)))
	}
	terminal := *w
	terminal.binary = launch
	return terminal.Interactive(Options{
		Args: []string{"--record", cast, "--grace", "1s", "--", "sh", "-i"},
		Env: []string{
			NoRetries, "PS1=" + shellPrompt, "LANG=C.UTF-8",
			"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
		},
		Rows: 24, Cols: 80,
	})
}

// enterSlowly types a command, with a pause between two keys.
func (s *Session) enterSlowly(ctx context.Context, command string, pause time.Duration) error {
	for _, key := range command + enter {
		if err := s.Type(string(key)); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
