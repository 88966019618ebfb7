package babysitter

import (
	"bytes"
	"encoding/json"
)

// misfires bounds how often something that begins like an answer may turn out not to be
// JSON, so that the search takes time proportional to the length of the output.
const misfires = 1000

// find returns the first JSON object in the output that is right. It is at the start of a
// line, unless process code printed there without ending the line.
func find[T any](output []byte, right func(*T) bool) (value T, ok bool) {
	for _, anywhere := range []bool{false, true} {
		if value, ok = scan(output, anywhere, right); ok {
			return value, true
		}
	}
	return value, false
}

func scan[T any](output []byte, anywhere bool, right func(*T) bool) (none T, ok bool) {
	missed := 0
	for at := 0; missed < misfires; {
		next := bytes.IndexByte(output[at:], '{')
		if next < 0 {
			break
		}
		at += next
		if !begins(output[at:]) || !anywhere && at > 0 && output[at-1] != '\n' {
			at++
			continue
		}
		d := json.NewDecoder(bytes.NewReader(output[at:]))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			missed++
			at++
			continue
		}
		var value T
		if json.Unmarshal(raw, &value) == nil && right(&value) {
			return value, true
		}
		at += int(d.InputOffset())
	}
	return none, false
}

// begins reports whether a JSON object with a member may begin here. A debugger prints
// objects in another form.
func begins(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b[1:min(len(b), 16)], " \t\r\n"), []byte(`"`))
}
