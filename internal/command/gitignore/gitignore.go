// Package gitignore asks git whether a folder is ignored, and adds a folder to the
// .gitignore of its work tree in a block of its own that can be taken out again.
package gitignore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
)

// MaxFile is the largest .gitignore that is read, in bytes.
const MaxFile = 1 << 20

// mark is the first line of a block. It tells whose the next line is.
const mark = "# The inbox of heartbeat (heartbeat init --undo takes it out)"

// patience is how long git may take for an answer.
const patience = 30 * time.Second

// ErrNoGit says that the folder is in a git work tree, and that there is no git to ask.
var ErrNoGit = errors.New("the folder is in a git work tree, and there is no git on the PATH")

// Need says what is missing for git to ignore a folder.
type Need struct {
	File string // the .gitignore to add to, absolute; "" where nothing is to be added
	Line string // the pattern to add
}

// Look asks git about dir, an absolute path that need not be there yet. It needs
// nothing in no work tree, or where dir is ignored already.
func Look(dir string) (Need, error) {
	from := dir
	for {
		if info, err := os.Stat(from); err == nil && info.IsDir() || from == filepath.Dir(from) {
			break
		}
		from = filepath.Dir(from)
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return Need{}, err
	}
	if !inWorkTree(real) {
		return Need{}, nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return Need{}, ErrNoGit
	}
	out, err := git(real, "rev-parse", "--show-toplevel")
	if err != nil {
		return Need{}, fmt.Errorf("ask git for the work tree of %s: %w", from, err)
	}
	top := strings.TrimSuffix(out, "\n")
	rest, err := filepath.Rel(from, dir)
	if err != nil {
		return Need{}, err
	}
	within, err := filepath.Rel(top, filepath.Join(real, rest))
	switch {
	case err != nil:
		return Need{}, err
	case within == ".":
		return Need{}, fmt.Errorf("the inbox would be beside the files of the work tree %s: give it a folder of its own, as in --inbox work/inbox.jsonl", top)
	case strings.ContainsAny(within, "\r\n"):
		return Need{}, fmt.Errorf("a line break is in the name of the folder %q, which no line of .gitignore can say: choose another name", within)
	}
	// git waits for the writer of a FIFO, and reads a file of any size.
	if _, err := disk.ReadFile(filepath.Join(top, ".gitignore"), MaxFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Need{}, err
	}
	switch done, err := ignored(top, filepath.Join(top, within, "inbox.jsonl")); {
	case err != nil:
		return Need{}, fmt.Errorf("ask git whether it ignores %s: %w", dir, err)
	case done:
		return Need{}, nil
	}
	if out, err = git(top, "ls-files", "--", ":(literal)"+within); err != nil {
		return Need{}, fmt.Errorf("ask git what it tracks in %s: %w", dir, err)
	}
	if first, _, _ := strings.Cut(out, "\n"); first != "" {
		return Need{}, fmt.Errorf("git tracks files in %s (%q): give the inbox a folder of its own", dir, first)
	}
	return Need{File: filepath.Join(top, ".gitignore"), Line: pattern(within)}, nil
}

// inWorkTree reports whether dir, or a folder above it, has a .git.
func inWorkTree(dir string) bool {
	for {
		if there, _ := disk.Exists(filepath.Join(dir, ".git")); there {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

func ignored(top, path string) (bool, error) {
	_, err := git(top, "check-ignore", "--quiet", "--", path)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// git runs git in dir. A hook of git's has variables that name another work tree.
func git(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
	})
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git did not answer within %s: is a .gitignore above %s a FIFO?", patience, dir)
	}
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return string(out), err
}

// pattern is the line that ignores a folder, given by its path below the .gitignore.
func pattern(within string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.ToSlash(within))
	return "/" + escaped + "/"
}

// Added returns the content of a .gitignore with a block for that line. It keeps the
// line ends that the file has.
func Added(content []byte, line string) []byte {
	end := endOf(content)
	out := slices.Clone(content)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, end...)
	}
	return append(out, block(line, end)...)
}

// Taken returns the content without the block for that line, and whether it had one.
// If cut, a line end that stands before the block at the end of the file goes as well.
func Taken(content []byte, line string, cut bool) ([]byte, bool) {
	for _, end := range []string{"\n", "\r\n"} {
		own := []byte(block(line, end))
		at := bytes.Index(content, own)
		if at < 0 || at > 0 && content[at-1] != '\n' {
			continue
		}
		before, after := content[:at], content[at+len(own):]
		if cut && len(after) == 0 {
			before = bytes.TrimSuffix(before, []byte(end))
		}
		return slices.Concat(before, after), true
	}
	return content, false
}

func block(line, end string) string { return mark + end + line + end }

func endOf(content []byte) string {
	if i := bytes.IndexByte(content, '\n'); i > 0 && content[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
