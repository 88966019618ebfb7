package babysitter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"
)

// misfires limits how often something that begins like an answer may turn out not to be JSON. The search then takes
// time proportional to the length of the output.
const misfires = 1000

// findObject returns the first JSON object in the output for which right returns true. The object starts a line, unless
// process code printed there without ending the line. Process code decides about the members of an answer: a member of
// an unexpected type reads as JSON, or as zero.
func findObject(output []byte, right func(gjson.Result) bool) (value gjson.Result, ok bool) {
	if value, ok = scan(output, false, right); ok {
		return value, true
	}
	return scan(output, true, right)
}

func scan(output []byte, anywhere bool, right func(gjson.Result) bool) (none gjson.Result, ok bool) {
	missed := 0
	for at := 0; missed < misfires; {
		next := bytes.IndexByte(output[at:], '{')
		if next < 0 {
			break
		}
		at += next
		if !beginsObject(output[at:]) || !anywhere && at > 0 && output[at-1] != '\n' {
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
		if value := gjson.ParseBytes(raw); right(value) {
			return value, true
		}
		at += int(d.InputOffset())
	}
	return none, false
}

// beginsObject reports whether a JSON object with a member may begin here. A debugger prints objects in another form.
func beginsObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b[1:min(len(b), 16)], " \t\r\n"), []byte(`"`))
}

// answerWhere returns [findObject] with right, for [request.answer].
func answerWhere(right func(gjson.Result) bool) func([]byte) (gjson.Result, bool) {
	return func(stdout []byte) (gjson.Result, bool) { return findObject(stdout, right) }
}

// call runs the CLI and returns the answer in its output, however the CLI ended.
func (c *CLI) call(ctx context.Context, r request) (gjson.Result, error) {
	out, err := c.runOnce(ctx, r)
	if err != nil {
		return gjson.Result{}, err
	}
	value, ok := r.answer(out.stdout)
	if !ok {
		return value, c.explain(r, out)
	}
	return value, nil
}

// callTwice is call for requests that may be repeated. The first may time out while node is read from a slow disk.
func (c *CLI) callTwice(ctx context.Context, r request) (gjson.Result, error) {
	value, err := c.call(ctx, r)
	if errors.Is(err, ErrTimeout) {
		c.note("%v: asked once more", err)
		r.timeout *= longer
		value, err = c.call(ctx, r)
	}
	return value, err
}
