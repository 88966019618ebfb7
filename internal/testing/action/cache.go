package action

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Cache keeps folders by key, as actions/cache does: what is saved never changes, it is found
// by the beginning of its key, and only for the same path.
type Cache struct {
	dir   string
	saved []saved // the newest last
}

type saved struct{ key, path, at string }

// NewCache keeps its copies below a folder.
func NewCache(dir string) *Cache { return &Cache{dir: dir} }

// Len is how many folders were saved.
func (c *Cache) Len() int { return len(c.saved) }

func (c *Cache) restore(key, beginning, path string) error {
	for _, exact := range []bool{true, false} {
		for i := len(c.saved) - 1; i >= 0; i-- {
			s := c.saved[i]
			if s.path == path && (exact && s.key == key || !exact && beginning != "" && strings.HasPrefix(s.key, beginning)) {
				return copyTree(s.at, path)
			}
		}
	}
	return nil
}

func (c *Cache) save(key, path string) error {
	for _, s := range c.saved {
		if s.key == key {
			return nil // a warning, for the real one
		}
	}
	s := saved{key, path, filepath.Join(c.dir, fmt.Sprint(len(c.saved)))}
	if err := copyTree(path, s.at); err != nil {
		return err
	}
	c.saved = append(c.saved, s)
	return nil
}

// copyTree makes new files, whose times have whole seconds.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, raw, 0o600); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(target, time.Time{}, info.ModTime().Truncate(time.Second))
	})
}
