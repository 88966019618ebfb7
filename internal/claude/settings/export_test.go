package settings

import "testing"

// BeforeWrite has f run between the reading and the writing of a file, for one test.
func BeforeWrite(t *testing.T, f func()) {
	testOnlyBeforeWrite = f
	t.Cleanup(func() { testOnlyBeforeWrite = func() {} })
}

// ShellWords is shellWords.
var ShellWords = shellWords
