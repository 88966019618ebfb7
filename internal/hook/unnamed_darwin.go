package hook

import "os"

// unnamedFile returns a file that only its descriptor reaches.
func unnamedFile() (*os.File, error) { return unlinkedFile() }
