package settings

import "testing"

// BeforeWrite runs f between reading and writing a file, for one test.
func BeforeWrite(t *testing.T, f func()) {
	testOnlyBeforeWrite = f
	t.Cleanup(func() { testOnlyBeforeWrite = func() {} })
}

// ShellWords returns the words of shellWords.
func ShellWords(line string) []string {
	return shellWords(line)
}

// Uninstall removes a wiring from a file whose earlier content is unknown.
func Uninstall(file []byte, w Wiring) ([]byte, error) { return w.uninstall(file, nil) }

// Ours reports whether Install could have written the hook.
func Ours(hook, inbox, command string) bool {
	file := []byte(`{"hooks":{"Stop":[{"hooks":[` + hook + `]}]}}`)
	_, hooks, err := parseHooks(file, Wiring{Command: command, Args: []string{"--inbox", inbox}})
	if err != nil {
		panic(err)
	}
	return len(hooks) == 1 && hooks[0].ours
}
