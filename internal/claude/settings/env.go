package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// installEnv sets or drops the variables, as the wiring says. before are the hooks from before the install.
func (e *editor) installEnv(before []wired) error {
	first := !slices.ContainsFunc(before, e.isHeartbeat)
	switch {
	case !e.wiring.DropEnv:
		return e.setEnv(first)
	case first:
		return e.noteEnv()
	case slices.ContainsFunc(before, e.isNeighbor):
		return nil
	}
	_, env, _, err := e.env()
	if err != nil {
		return err
	}
	return e.dropEnv(strings.Fields(note(env)))
}

// noteEnv notes which variables are already set, for a later Uninstall.
func (e *editor) noteEnv() error {
	_, env, _, err := e.env()
	if err != nil {
		return err
	}
	var keep []string
	for _, key := range slices.Sorted(maps.Keys(e.wiring.Env)) {
		if i := env.find(key); i >= 0 && decode(env.items[i].value) == any(e.wiring.Env[key]) {
			keep = append(keep, key)
		}
	}
	return e.noteKept(keep)
}

// setEnv sets the variables. first says that there was no heartbeat hook before: then a variable that is already set is
// the user's own, and is noted as one to keep.
func (e *editor) setEnv(first bool) error {
	var keep []string
	for _, key := range slices.Sorted(maps.Keys(e.wiring.Env)) {
		present, err := e.setVariable(key, e.wiring.Env[key])
		if err != nil {
			return err
		}
		if present && first {
			keep = append(keep, key)
		}
	}
	return e.noteKept(keep)
}

// setVariable adds a variable and reports whether it was there. Another value is an EnvError.
func (e *editor) setVariable(key, value string) (present bool, err error) {
	d, env, ok, err := e.env()
	if err != nil {
		return false, err
	}
	if !ok {
		e.text = d.insert(d.top(), member{"env", []member{{key, value}}})
		return false, nil
	}
	i := env.find(key)
	if i < 0 {
		e.text = d.insert(env, member{key, value})
		return false, nil
	}
	have := env.items[i].value
	if decode(have) != any(value) {
		return false, &EnvError{
			Key: key, Have: spelled(have), Want: value, Line: d.line(have.StartOffset),
		}
	}
	return true, nil
}

// noteKept adds names to the note of variables that Uninstall leaves.
func (e *editor) noteKept(names []string) error {
	if len(names) == 0 {
		return nil
	}
	d, env, there, err := e.env()
	if err != nil {
		return err
	}
	if !there {
		e.text = d.insert(d.top(), member{"env", []member{{keepEnv, strings.Join(names, " ")}}})
		return nil
	}
	i := env.find(keepEnv)
	if i < 0 {
		e.text = d.insert(env, member{keepEnv, strings.Join(names, " ")})
		return nil
	}
	have := env.items[i].value
	noted, _ := decode(have).(string)
	all := strings.Fields(noted)
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if joined := strings.Join(all, " "); joined != noted {
		text := string(hujson.String(joined))
		e.text = splice(d.text, edit{at: have.StartOffset, cut: have.EndOffset - have.StartOffset, text: text})
	}
	return nil
}

// unsetEnv removes the variables that setEnv added, in the opposite order.
func (e *editor) unsetEnv() error {
	_, env, ok, err := e.env()
	if err != nil || !ok {
		return err
	}
	keep := note(env)
	if err := e.unsetVariable(keepEnv, keep); err != nil {
		return err
	}
	return e.dropEnv(strings.Fields(keep))
}

// note returns the value of the note in env, or "".
func note(env box) string {
	i := env.find(keepEnv)
	if i < 0 {
		return ""
	}
	noted, _ := decode(env.items[i].value).(string)
	return noted
}

// dropEnv removes the variables of the wiring except those to keep, the last one first.
func (e *editor) dropEnv(keep []string) error {
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(e.wiring.Env))) {
		if slices.Contains(keep, key) {
			continue
		}
		if err := e.unsetVariable(key, e.wiring.Env[key]); err != nil {
			return err
		}
	}
	return nil
}

// unsetVariable removes a variable that has the given value.
func (e *editor) unsetVariable(key, value string) error {
	if len(e.text) == 0 {
		return nil
	}
	d, env, _, err := e.env()
	if err != nil {
		return err
	}
	i := env.find(key)
	if i < 0 || decode(env.items[i].value) != any(value) {
		return nil
	}
	top := d.top()
	e.text = d.remove([]place{{top, top.find("env")}, {env, i}})
	return nil
}

// env returns the "env" object and whether there is one.
func (e *editor) env() (d document, env box, ok bool, err error) {
	if d, err = parse(e.text); err != nil {
		return d, env, false, err
	}
	env, ok, err = d.object(d.top(), "env", "env")
	return d, env, ok, err
}

// spelled returns v as it is spelled in the file, without the comments around it.
func spelled(v *hujson.Value) string {
	return string(hujson.Value{Value: v.Value}.Pack())
}
