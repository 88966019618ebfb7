package hook

import "os"

func unnamedFile() (*os.File, error) { return unlinkedFile() }
