//go:build !linux

package doctor

func statFileSystem(string) (fileSystem, error) { return fileSystem{}, errNoStatfs }
