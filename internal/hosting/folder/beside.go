package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Beside returns the folders of all sessions beside a database, by id.
func Beside(db string) ([]Folder, error) {
	db, err := resolve(db)
	if err != nil {
		return nil, fmt.Errorf("list the sessions beside a database: %w", err)
	}
	root := Root(db)
	err = checkDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list the sessions beside %s: %w", db, err)
	}
	var all []Folder
	for _, name := range names {
		if name.IsDir() && CheckID(name.Name()) == nil {
			all = append(all, Folder{ID: name.Name(), DB: db})
		}
	}
	return all, nil
}
