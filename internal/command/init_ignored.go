package command

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

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
)

const (
	// maxIgnored is the largest .gitignore that is read, in bytes.
	maxIgnored = 1 << 20
	// ignoreMark is the first line of a block. It tells whose the next line is.
	ignoreMark = "# The inbox of heartbeat (heartbeat init --undo takes it out)"
	// gitTime is how long git may take for an answer.
	gitTime = 30 * time.Second
)

// planIgnored returns the step that has git ignore the inbox's folder, nil for none.
func (o *initFlags) planIgnored(s cli.Streams) (step func() error, err error) {
	file, line, err := o.unignored(s)
	if err != nil || file == "" {
		return nil, err
	}
	content, there, err := readIgnored(file)
	if err != nil {
		return nil, err
	}
	if !o.yes {
		if !cli.IsTerminal(s.In) {
			return nil, cli.Usage(fmt.Errorf("git would see the inbox, and nobody is there to be asked whether %s may be added to %s: add --yes, or ignore the folder yourself", line, file))
		}
		if !program.Agreed(fmt.Sprintf("add %s to %s?", line, file), s) {
			s.Note("git sees the inbox: nothing was added to %s", file)
			return nil, nil
		}
	}
	o.made.Ignore, o.made.Line = file, line
	o.made.IgnoreFile = o.made.IgnoreFile || !there
	o.made.Newline = len(content) > 0 && content[len(content)-1] != '\n'
	return func() error {
		if _, err := settings.Replace(file, content, withIgnored(content, line), 0o644); err != nil {
			return fmt.Errorf("add %s to %s: %w", line, file, err)
		}
		_, err := fmt.Fprintf(s.Out, "added %s to %s\n", line, file)
		return err
	}, nil
}

// unignored asks git about the inbox's folder, which need not be there yet: the .gitignore of its work tree and the line to
// add to that, "" where it is in none, or is ignored already.
func (o *initFlags) unignored(s cli.Streams) (file, line string, err error) {
	from, rest := o.dir, ""
	if there, _ := disk.Exists(from); !there {
		from, rest = filepath.Split(o.dir)
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil || !inWorkTree(real) {
		return "", "", err
	}
	if _, err := exec.LookPath("git"); err != nil {
		s.Note("the folder is in a git work tree, and there is no git on the PATH: add the inbox's folder to .gitignore yourself")
		return "", "", nil
	}
	out, err := git(real, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", fmt.Errorf("ask git for the work tree of %s: %w", from, err)
	}
	top := strings.TrimSuffix(out, "\n")
	within, err := filepath.Rel(top, filepath.Join(real, rest))
	switch {
	case err != nil:
		return "", "", err
	case within == ".":
		return "", "", fmt.Errorf("the inbox would be beside the files of the work tree %s: give it a folder of its own, as in --inbox work/inbox.jsonl", top)
	case strings.ContainsAny(within, "\r\n"):
		return "", "", fmt.Errorf("a line break is in the name of the folder %q, which no line of .gitignore can say: choose another name", within)
	}
	file = filepath.Join(top, ".gitignore")
	// git waits for the writer of a FIFO, and reads a file of any size.
	if _, err := disk.ReadFile(file, maxIgnored); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	_, err = git(top, "check-ignore", "--quiet", "--", filepath.Join(top, within, "inbox.jsonl"))
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		if err != nil {
			err = fmt.Errorf("ask git whether it ignores %s: %w", o.dir, err)
		}
		return "", "", err
	}
	if out, err = git(top, "ls-files", "--", ":(literal)"+within); err != nil {
		return "", "", fmt.Errorf("ask git what it tracks in %s: %w", o.dir, err)
	}
	if first, _, _ := strings.Cut(out, "\n"); first != "" {
		return "", "", fmt.Errorf("git tracks files in %s (%q): give the inbox a folder of its own", o.dir, first)
	}
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.ToSlash(within))
	return file, "/" + escaped + "/", nil
}

// inWorkTree reports whether dir, or a folder above it, has a .git.
func inWorkTree(dir string) bool {
	there, _ := disk.Exists(filepath.Join(dir, ".git"))
	return there || dir != filepath.Dir(dir) && inWorkTree(filepath.Dir(dir))
}

// git runs git in dir. A hook of git's has variables that name another work tree.
func git(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
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
		return "", fmt.Errorf("git did not answer within %s: is a .gitignore above %s a FIFO?", gitTime, dir)
	}
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return string(out), err
}

// withIgnored returns the content of a .gitignore with a block for that line. It keeps the line ends that the file has.
func withIgnored(content []byte, line string) []byte {
	end := endOf(content)
	out := slices.Clone(content)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, end...)
	}
	return append(out, ignoreMark+end+line+end...)
}

// withoutIgnored returns the content without the block for that line, and whether it had one. If cut, a line end that stands
// before the block at the end of the file goes as well.
func withoutIgnored(content []byte, line string, cut bool) ([]byte, bool) {
	for _, end := range []string{"\n", "\r\n"} {
		own := []byte(ignoreMark + end + line + end)
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

func endOf(content []byte) string {
	if i := bytes.IndexByte(content, '\n'); i > 0 && content[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// readIgnored returns the content of the .gitignore at path, and whether it is there. It is an error if it may not be
// replaced.
func readIgnored(path string) (content []byte, there bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, true, fmt.Errorf("%s is a symbolic link, which git does not follow: make it a file", path)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o200 == 0:
		return nil, true, fmt.Errorf("%s is read-only (mode %04o): make it writable, then try again", path, info.Mode().Perm())
	}
	content, err = disk.ReadFile(path, maxIgnored)
	return content, true, err
}
