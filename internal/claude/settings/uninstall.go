package settings

import "slices"

// Uninstall returns the settings file without the hooks of w's inbox, in whatever event they are, and without the
// variables of w if no other inbox's hook is left to need them. Nil means that nothing is left and that the file is to
// be removed. A file with nothing of ours in it comes back as it is.
//
// Of w only the inbox, the base name of Command and Env count. Hooks in shell form and variables that have been changed
// are not ours and stay. So does every variable where a person has already deleted the hooks: nothing tells then whose
// it is. The error is a *SyntaxError or *ShapeError, or tells what is wrong with w.
func Uninstall(file []byte, w Wiring) ([]byte, error) {
	if err := w.checkIdentity(); err != nil {
		return nil, err
	}
	e, mark := newEditor(file, w)
	if err := e.uninstall(len(mark) > 0); err != nil {
		return nil, err
	}
	if len(e.text) > 0 {
		return slices.Concat(mark, e.text), nil
	}
	if len(mark) > 0 {
		return slices.Concat(mark, []byte("{}\n")), nil // Install writes no mark, so there was a file
	}
	return nil, nil
}

func (e *editor) uninstall(exists bool) error {
	hooks, err := e.scan(exists)
	if err != nil || !slices.ContainsFunc(hooks, e.isOurs) {
		return err
	}
	if !slices.ContainsFunc(hooks, e.isNeighbor) {
		if err := e.unsetEnv(); err != nil {
			return err
		}
	}
	err = e.removeHooks(func(hooks []wired, i int) bool { return e.isOurs(hooks[i]) })
	if err != nil || len(e.text) == 0 {
		return err
	}
	_, err = parse(e.text) // as in Install
	return err
}
