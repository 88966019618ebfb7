package settings

import "slices"

// Uninstall returns the settings file without the hooks of w's inbox, in any event, without its meter, and without the
// variables of w if no hook of another inbox needs them. Nil means that nothing is left and the file should be removed. A file with nothing
// of ours comes back unchanged.
//
// Only w's inbox, Env and the base names of Command and of the meter count. Hooks in shell form, a status line that a
// person has changed into more than a meter, and variables with other values are not ours and stay. If a person has already deleted the hooks, all variables stay, since nothing shows whose they are. The
// error is a *SyntaxError or *ShapeError, or says what is wrong with w.
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
	if err != nil {
		return err
	}
	if err := e.disallow(); err != nil || len(e.text) == 0 {
		return err
	}
	if err := e.unwireMeter(); err != nil || !slices.ContainsFunc(hooks, e.isOurs) {
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
