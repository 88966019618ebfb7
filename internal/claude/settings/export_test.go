package settings

import "testing"

// BeforeWrite has f run between the reading and the writing of a file, for one test.
func BeforeWrite(t *testing.T, f func()) {
	testOnlyBeforeWrite = f
	t.Cleanup(func() { testOnlyBeforeWrite = func() {} })
}

// ShellWords are the words of shellWords.
func ShellWords(line string) []string {
	words, _, _ := shellWords(line)
	return words
}

// Uninstall takes a wiring out of a file of which it is not known how it was.
func Uninstall(file []byte, w Wiring) ([]byte, error) { return w.uninstall(file, nil) }

// Ours reports whether a hook in a file of its own is one that Install could have written.
func Ours(hook, inbox, command string) bool {
	d, err := parse([]byte(`{"hooks":{"Stop":[{"hooks":[` + hook + `]}]}}`))
	if err != nil {
		panic(err)
	}
	hooks, _ := d.hooks(command, false)
	return len(hooks) == 1 && hooks[0].is(inbox)
}
