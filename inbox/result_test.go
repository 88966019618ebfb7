package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// evidence is what a consumer may note about a delivery.
var evidence = raw(`{"transcript":123,"note":"a \"quote\" and é"}`)

func TestDeliveryOnDisk(t *testing.T) {
	box := newBox(t, "{\"prompt\":\"x\",\"id\":\"job\"}\r\n")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		d, err := tx.Deliver(e, inbox.Recipient{SessionID: "s/../1", PromptID: "p", Evidence: evidence})
		require.NoError(t, err)
		assert.Equal(t, "x", d.Text())
		assert.Equal(t, "job", d.ID())
	})
	want := inbox.Delivery{
		EntryID: sha256Hex(`{"prompt":"x","id":"job"}`), EndOffset: 28, Attempt: 1, DeliveredSeq: 1,
		RawLine:     inbox.RawLine{Text: `{"prompt":"x","id":"job"}`},
		DeliveredAt: noon, SessionID: "s/../1", PromptID: "p", Inbox: "inbox.jsonl", Evidence: evidence,
	}
	want.EndOffset = fileSize(t, box.Path())
	assert.Equal(t, want, inFlightFile(t, box))
	assert.Equal(t, &want, begin(t, box).InFlight())
	assert.Equal(t, "0", cursorFile(t, box), "it moves when the entry is answered")
	assert.FileExists(t, beside(box, ".responded"))
	assert.NoFileExists(t, box.DeadLetterPath())
}

// The members that heartbeat-rs knows have its types and its time format.
func TestInFlightIsReadableByHeartbeatRs(t *testing.T) {
	box := newBox(t, "one\n")
	turn(t, box)
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(read(t, beside(box, ".in-flight"))), &members))
	assert.Equal(t, sha256Hex("one"), members["entry_id"])
	assert.Equal(t, 0.0, members["start_offset"])
	assert.Equal(t, 4.0, members["end_offset"])
	assert.Equal(t, "one", members["raw_line"])
	assert.Equal(t, noon.Format(time.RFC3339Nano), members["delivered_at"])
	assert.Equal(t, 1.0, members["attempt"])
}

func TestResultOnDisk(t *testing.T) {
	const line = `{"prompt":"x","id":"job-ü","tags":["a", {"b":null}],"<html>":"&"}`
	reply := "two\nlines, \u2028, <b>&amp;</b>, \x00, \"quoted\\\" " + strings.Repeat("é", 5000)
	box := newBox(t, "zero\n"+line+"\n")
	turn(t, box)
	acknowledge(t, box, "")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", PromptID: "p"})
		require.NoError(t, err)
	})
	acknowledge(t, box, reply)
	assert.Equal(t, []inbox.Result{
		{
			EntryID: sha256Hex("zero"), EndOffset: 5, Attempt: 1, SessionID: "s", DeliveredAt: noon, AcknowledgedAt: noon, Prompt: "zero", FirstSeq: 1,
		},
		{
			EntryID: sha256Hex(line), ID: "job-ü", Metadata: metadata{"tags": raw(`["a",{"b":null}]`), "<html>": raw(`"&"`)},
			StartOffset: 5, EndOffset: int64(6 + len(line)), Attempt: 1,
			SessionID: "s", PromptID: "p", DeliveredAt: noon, AcknowledgedAt: noon, Prompt: "x", Reply: reply, FirstSeq: 3,
		},
	}, results(t, box))
	assert.NoFileExists(t, beside(box, ".in-flight"))
	assert.NoFileExists(t, beside(box, ".responded"))
	assert.NoFileExists(t, box.DeadLetterPath())
}

// A result keeps the first 200 characters of its entry's text, and splits none of them.
func TestResultKeepsTheBeginningOfThePrompt(t *testing.T) {
	whole := strings.Repeat("é", 200)
	for text, want := range map[string]string{
		"two\\nlines":     "two\nlines",
		whole:             whole,
		whole + "!":       whole,
		"caf\xe9 au lait": "caf\ufffd au lait",
	} {
		box := newBox(t, `{"prompt":"`+text+`"}`+"\n")
		turn(t, box)
		acknowledge(t, box, "done")
		assert.Equal(t, want, results(t, box)[0].Prompt)
	}
}

// A line from before the prompt was kept is still a result.
func TestResultWithoutAPrompt(t *testing.T) {
	box := newBox(t, "one\n")
	turn(t, box)
	acknowledge(t, box, "done")
	line := read(t, box.ResultsPath())
	require.Contains(t, line, `"prompt":"one",`)
	rewrite(t, box.ResultsPath(), strings.Replace(line, `"prompt":"one",`, "", 1))
	assert.Empty(t, results(t, box)[0].Prompt)
	assert.Equal(t, "done", results(t, box)[0].Reply)
}

// A reply that is not UTF-8 is still a line of JSON.
func TestReplyIsNotUTF8(t *testing.T) {
	box := newBox(t, "one\n")
	turn(t, box)
	acknowledge(t, box, "caf\xe9")
	assert.Equal(t, "caf\ufffd", results(t, box)[0].Reply)
}

// A consumer's note is JSON in any layout.
func TestEvidenceOfAnyLayout(t *testing.T) {
	for name, note := range map[string]string{
		"null":       "null",
		"string":     `"x"`,
		"spread out": "{\n  \"a\": [\n\t1,\r\n 2 ]\n}",
		"padded":     " 1 ",
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			in(t, box, func(tx *inbox.Tx) {
				e, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				_, err = tx.Deliver(e, inbox.Recipient{Evidence: raw(note)})
				require.NoError(t, err)
			})
			d := begin(t, box).InFlight()
			require.NotNil(t, d, "what was committed is there")
			if name != "null" {
				assert.JSONEq(t, note, string(d.Evidence))
			}
		})
	}
}

// deepNote is as deep as JSON can be read, and so too deep to be part of more.
var deepNote = strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)

// A note that is not JSON is an error: keeping it would lose the state.
func TestEvidenceMustBeJSON(t *testing.T) {
	for name, note := range map[string]string{"text": "see above", "cut off": `{"a":`, "two": "1 2", "too deep": deepNote} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			tx := begin(t, box)
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{Evidence: raw(note)})
			if err == nil {
				err = tx.Commit()
			}
			assert.Error(t, err)
			require.NoError(t, tx.Close())
			assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
		})
	}
}
