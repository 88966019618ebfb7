package run

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"heartbeat/internal/disk"
)

// Code is what a step of a run executes, as far as that can be known without executing it: a digest for each file,
// and for each package of the project.
type Code map[string]string

// Limits of the search. No real process is larger.
const (
	maxCode  = 64 << 20 // bytes of modules
	maxFiles = 200_000  // in packages
)

const (
	theEntry  = "run.json"  // which module the process is
	missing   = "-"         // nothing is there; a file would be used
	elsewhere = "elsewhere" // a package outside of the project counts as part of the system
	modules   = "node_modules"
)

// Code returns the process's module, the modules that it and its imports name by literals, and the packages of the
// project that these need; also what babysitter's command uses of the project: its own package, a dispatcher of hooks,
// npm's settings, and the command itself.
func (r *Run) Code(project string, command []string) (Code, error) {
	entry := r.entry
	if !filepath.IsAbs(entry) {
		entry = filepath.Join(r.dir, entry)
	}
	if project == "" {
		project = filepath.Dir(entry)
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	s := &scanner{project: project, parts: Code{theEntry: r.entry}, room: maxCode}
	s.module(entry)
	s.bare("@a5c-ai/babysitter-sdk", project)
	s.module(filepath.Join(project, ".npmrc"))
	for _, word := range command {
		if filepath.IsAbs(word) && isBelow(project, word) {
			s.module(word)
		}
	}
	s.hooks(filepath.Dir(filepath.Dir(filepath.Dir(r.dir))))
	for len(s.queue) > 0 && s.err == nil {
		next := s.queue[0]
		s.queue = s.queue[1:]
		next()
	}
	if s.err != nil {
		return nil, fmt.Errorf("look at the code of run %s: %w", r.id, s.err)
	}
	return s.parts, nil
}

// Differs names what differs from another state of the code, in order.
func (c Code) Differs(other Code) (names []string) {
	if c[theEntry] != other[theEntry] {
		return []string{theEntry}
	}
	for name, is := range c {
		if was, known := other[name]; known && was != is || !known && is != missing {
			names = append(names, name)
		}
	}
	for name, was := range other {
		if _, known := c[name]; !known && was != missing {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

type scanner struct {
	project string
	parts   Code
	queue   []func() // scans what is still to be scanned
	room    int64
	files   int
	err     error
}

// module adds a file and queues what it imports. It reports whether the file exists.
func (s *scanner) module(path string) bool {
	if is, known := s.parts[path]; known {
		return is != missing
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		if dir, in := packageOf(real); in {
			s.parts[path] = real
			s.pack(dir)
			return true
		}
	}
	text, err := disk.ReadFile(path, s.room)
	switch {
	case errors.Is(err, disk.ErrTooLarge), err != nil && !gone(err) && !isFolder(path):
		s.fail(err)
		return true
	case err != nil:
		s.parts[path] = missing
		return false
	}
	s.room -= int64(len(text))
	s.parts[path] = fmt.Sprintf("%x", sha256.Sum256(text))
	if real != path {
		s.parts[path] += " " + real
	}
	s.queue = append(s.queue, func() {
		for _, m := range imports().FindAllSubmatch(text, -1) {
			s.imported(string(m[1]), filepath.Dir(real))
		}
	})
	return true
}

// imports matches what a module names after import, from, require, resolve and new URL.
var imports = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\\b(?:from|import|require|resolve|URL)\\s*\\(?\\s*(?:/\\*[^*]*\\*/\\s*)*[\"'`]([^\"'`\\r\\n]+)[\"'`]")
})

func (s *scanner) imported(name, dir string) {
	if u, err := url.Parse(name); err == nil && u.Scheme == "file" {
		name = u.Path
	}
	switch {
	case strings.HasPrefix(name, "."):
		name, _, _ = strings.Cut(name, "?")
		s.file(filepath.Join(dir, name))
	case filepath.IsAbs(name):
		s.file(filepath.Clean(name))
	case strings.HasPrefix(name, "#"):
		s.mapped(dir)
	case !strings.Contains(name, ":"):
		s.bare(name, dir)
	}
}

// file adds what node loads for a path, and what node would prefer to that.
func (s *scanner) file(path string) {
	for _, ending := range []string{"", ".js", ".json", ".node", ".mjs", ".cjs", ".ts", ".mts", "/package.json", "/index.js", "/index.json", "/index.node"} {
		if !s.module(path + ending) {
			continue
		}
		if ending != "/package.json" {
			return
		}
		var p struct{ Main string }
		if text, err := disk.ReadFile(path+ending, maxFile); err == nil && json.Unmarshal(text, &p) == nil && p.Main != "" {
			s.file(filepath.Join(path, p.Main))
			return
		}
	}
}

// mapped adds the package.json that resolves names with a #, and the files in it.
func (s *scanner) mapped(dir string) {
	for dir := range upwards(dir) {
		path := filepath.Join(dir, "package.json")
		if s.module(path) {
			text, _ := disk.ReadFile(path, maxFile) // it was read just now
			var p struct{ Imports any }
			_ = json.Unmarshal(text, &p) // node will report an error
			s.each(p.Imports, dir)
			return
		}
	}
}

func (s *scanner) each(v any, dir string) {
	switch v := v.(type) {
	case string:
		if !strings.Contains(v, "*") {
			s.imported(v, dir)
		}
	case []any:
		for _, one := range v {
			s.each(one, dir)
		}
	case map[string]any:
		for _, one := range v {
			s.each(one, dir)
		}
	}
}

// bare adds the package that a name means in a directory.
func (s *scanner) bare(name, dir string) {
	name = packageName(name)
	for dir := range upwards(dir) {
		if filepath.Base(dir) != modules {
			path := filepath.Join(dir, modules, name)
			if _, err := disk.StatDir(path); err == nil {
				s.queue = append(s.queue, func() { s.pack(path) })
				return
			}
			s.parts[path+"/"] = missing
		}
	}
}

// pack adds a package and the packages that it needs. Files count by their stamps, which only root can set back.
func (s *scanner) pack(dir string) {
	if is, known := s.parts[dir+"/"]; known && is != missing {
		return
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		s.fail(err)
		return
	}
	if !isBelow(s.project, real) {
		s.parts[dir+"/"] = elsewhere + " " + real
		return
	}
	s.parts[dir+"/"] = s.tree(real) + " " + real
	var p struct{ Dependencies, OptionalDependencies, PeerDependencies map[string]any }
	if text, err := disk.ReadFile(filepath.Join(real, "package.json"), maxFile); err == nil {
		_ = json.Unmarshal(text, &p) // node will report an error
	}
	for _, needs := range []map[string]any{p.Dependencies, p.OptionalDependencies, p.PeerDependencies} {
		for name := range needs {
			s.bare(name, real)
		}
	}
}

// tree returns a digest of the stamps of all files in a directory, without the packages in it.
func (s *scanner) tree(dir string) string {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == modules:
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		if s.files++; s.files > maxFiles {
			return fmt.Errorf("its packages have over %d files", maxFiles)
		}
		i, err := disk.StatName(path)
		if err == nil && i.IsLink {
			i, err = disk.StatFile(path)
			if gone(err) {
				err = nil
			}
		}
		fmt.Fprintln(sum, path, i.Size, i.Mtime, i.Ctime, i.Ino)
		return err
	})
	if err != nil {
		s.fail(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// hooks adds what babysitter runs at each iteration, if a dispatcher of hooks is in the project's root or above.
func (s *scanner) hooks(root string) {
	for dir := range upwards(root) {
		hooks := filepath.Join(dir, "plugins", "babysitter", "hooks")
		dispatcher := filepath.Join(hooks, "hook-dispatcher.sh")
		if s.module(dispatcher) {
			for _, tree := range []string{hooks, filepath.Join(root, ".a5c", "hooks")} {
				if isFolder(tree) {
					s.parts[tree+"/"] = s.tree(tree)
				}
			}
			return
		}
	}
}

// upwards yields a directory, and then each one above it.
func upwards(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
	}
}

func (s *scanner) fail(err error) { s.err = errors.Join(s.err, err) }

// packageOf returns the directory of the package that a file belongs to, if any.
func packageOf(path string) (dir string, in bool) {
	const within = "/" + modules + "/"
	at := strings.LastIndex(path, within) + len(within)
	if at < len(within) || !strings.Contains(path[at:], "/") {
		return "", false
	}
	return path[:at] + packageName(path[at:]), true
}

// packageName returns the package that a path begins with: @SCOPE/NAME, or NAME.
func packageName(path string) string {
	name, rest, more := strings.Cut(path, "/")
	if strings.HasPrefix(name, "@") && more {
		scoped, _, _ := strings.Cut(rest, "/")
		name += "/" + scoped
	}
	return name
}

func isBelow(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

func isFolder(path string) bool {
	_, err := disk.StatDir(path)
	return err == nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
