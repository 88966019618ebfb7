package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

func say(t testing.TB, box *inbox.Inbox, v inbox.Verdict) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Say(v)) })
}

func TestAVerdictIsKeptWithItsDelivery(t *testing.T) {
	now := clockOf(t, newBox(t, "one\ntwo\n"))
	deliver(t, now.box)
	say(t, now.box, inbox.Verdict{Kind: inbox.VerdictRejected, Text: "no"})
	say(t, now.box, inbox.Verdict{Kind: inbox.VerdictDone, Text: "{\"a\":\t1}\n"}) // the last verdict counts
	in(t, now.box, func(tx *inbox.Tx) {
		assert.Equal(t, &inbox.Verdict{Kind: inbox.VerdictDone, Text: "{\"a\":\t1}\n", At: noon}, tx.InFlight().Verdict)
		require.NoError(t, tx.NoteProgress("half", time.Minute))
	})
	in(t, now.box, func(tx *inbox.Tx) {
		require.NoError(t, tx.Bind(inbox.Recipient{SessionID: "s", PromptID: "p"}))
	})
	in(t, now.box, func(tx *inbox.Tx) {
		d := tx.InFlight()
		assert.Equal(t, inbox.VerdictDone, d.Verdict.Kind)
		assert.Equal(t, &inbox.Progress{Text: "half", At: noon, Until: noon.Add(time.Minute)}, d.Progress)
		require.NoError(t, tx.Acknowledge("the reply"))
	})
	r := results(t, now.box)[0]
	assert.Equal(t, []any{"the reply", "{\"a\":\t1}\n", true}, []any{r.Reply, r.Result, r.Said})
	deliver(t, now.box)
	in(t, now.box, func(tx *inbox.Tx) {
		assert.Nil(t, tx.InFlight().Verdict)
		assert.Nil(t, tx.InFlight().Progress)
		require.NoError(t, tx.Acknowledge(""))
	})
	assert.False(t, results(t, now.box)[1].Said)
	var kinds []string
	for _, e := range events(t, now.box) {
		kinds = append(kinds, string(e.Event)+" "+e.Reason)
	}
	assert.Equal(t, []string{"verdict rejected: no", "verdict done: {\"a\":\t1}\n", "progress half"}, kinds)
}

func TestAVerdictThatIsRefused(t *testing.T) {
	soon, late := noon.Add(time.Hour), noon.Add(8*24*time.Hour)
	for sentence, v := range map[string]inbox.Verdict{
		"there is no verdict":     {Kind: "well"},
		"a reason is needed":      {Kind: inbox.VerdictFailed, Text: " \n"},
		"is the most":             {Kind: inbox.VerdictDone, Text: strings.Repeat("x", inbox.MaxResult+1)},
		"4096 is the most":        {Kind: inbox.VerdictRejected, Text: strings.Repeat("x", inbox.MaxReason+1)},
		"not UTF-8":               {Kind: inbox.VerdictDone, Text: "\xff"},
		"only an entry that fail": {Kind: inbox.VerdictDone, Until: &soon},
		"168h0m0s at most":        {Kind: inbox.VerdictFailed, Text: "x", Until: &late},
	} {
		t.Run(sentence, func(t *testing.T) {
			box := clockOf(t, newBox(t, "one\n")).box
			deliver(t, box)
			before := inFlightFile(t, box)
			in(t, box, func(tx *inbox.Tx) {
				require.ErrorContains(t, tx.Say(v), sentence)
				assert.False(t, tx.Dirty())
			})
			assert.Equal(t, before, inFlightFile(t, box))
		})
	}
	in(t, newBox(t, "one\n"), func(tx *inbox.Tx) {
		assert.ErrorContains(t, tx.Say(inbox.Verdict{Kind: inbox.VerdictDone}), "nothing is in flight")
		assert.ErrorContains(t, tx.NoteProgress("", 0), "nothing is in flight")
	})
}

func TestAGivenBackEntryHasNoVerdict(t *testing.T) {
	box := newBox(t, "one\n")
	deliver(t, box)
	say(t, box, inbox.Verdict{Kind: inbox.VerdictDone})
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight().Verdict) })
}

// An entry that is put off comes again with its bytes and attempts, behind the waiting ones.
func TestPutOff(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"envelope":      `{"prompt":"x","id":"7","m":[1]}`,
		"text":          "x y",
		"invalid UTF-8": "caf\xe9",
		"CRLF":          "x\r",
		"byte mark":     "\uFEFFx",
	} {
		t.Run(name, func(t *testing.T) {
			now := clockOf(t, newBox(t, line+"\ntwo\n"))
			box, at := now.box, noon.Add(time.Hour)
			first := deliver(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", at)) })
			assert.NoFileExists(t, beside(box, ".in-flight"))
			all, err := box.Scheduled()
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, []any{first.ID, first.EntryID, at, first.Text}, []any{all[0].ID, all[0].EntryID, all[0].NotBefore, all[0].Text})
			e := events(t, box)[0]
			assert.Equal(t, []any{inbox.EventRedelivered, "not now", &at, 1}, []any{e.Event, e.Reason, e.Until, e.Attempt})
			assert.Equal(t, []string{"two"}, drain(t, box))
			now.set(at)
			again := deliver(t, box)
			assert.Equal(t, []any{first.EntryID, first.Text, 2}, []any{again.EntryID, again.Text, again.Attempt})
			assert.Empty(t, scheduledIDs(t, box))

			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", at.Add(time.Hour))) })
			now.set(at.Add(time.Hour))
			assert.Equal(t, 3, deliver(t, box).Attempt)
			acknowledge(t, box, "done")
			echo(t, box.Path(), line+"\n") // the same line again is another entry
			assert.Equal(t, 1, deliver(t, box).Attempt)
		})
	}
}

func TestPutOffIntoThePastIsGivenBack(t *testing.T) {
	box := clockOf(t, newBox(t, "one\ntwo\n")).box
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("again", noon)) })
	e := deliver(t, box)
	assert.Equal(t, []any{"one", 2}, []any{e.Text, e.Attempt})
}

func TestCancelOfWhatIsPutOff(t *testing.T) {
	box := clockOf(t, newBox(t, "one\n")).box
	first := deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	in(t, box, func(tx *inbox.Tx) {
		l, err := tx.CancelScheduled(first.EntryID)
		require.NoError(t, err)
		assert.Equal(t, []any{inbox.ReasonCanceled, 1, "one"}, []any{l.Reason, l.Attempts, l.Text()})
	})
	all, err := box.Scheduled()
	require.NoError(t, err)
	assert.Empty(t, all)
	assert.Len(t, deadLetters(t, box), 1)
}

// A process that waits for an outcome gets it, even if the entry was put off.
func TestAwaitWhatIsPutOff(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	r := now.send(t, inbox.Message{ID: "job", Text: "x"})
	deliver(t, now.box)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	now.set(noon.Add(time.Hour))
	deliver(t, now.box)
	acknowledge(t, now.box, "done at last")
	o, err := outcomes.Await(t.Context(), now.box, r, 0)
	require.NoError(t, err)
	require.NotNil(t, o.Result)
	assert.Equal(t, []any{"done at last", 2}, []any{o.Result.Reply, o.Result.Attempt})
}

func TestWhatIsNoPutOffLineStays(t *testing.T) {
	for _, line := range []string{
		`{"put_off":{},"not_before":"2020-01-01T00:00:00Z","raw_line":""}`,
		`{"put_off":{},"not_before":"2020-01-01T00:00:00Z","raw_line":"a\nb"}`,
		`{"put_off":[],"not_before":"2020-01-01T00:00:00Z","raw_line":"a"}`,
		`{"put_off":{},"raw_line":"a"}`,
	} {
		box := newBox(t, "")
		write(t, beside(box, ".scheduled.jsonl"), line+"\n")
		nextDue(t, box)
		assert.Equal(t, line+"\n", read(t, beside(box, ".scheduled.jsonl")), line)
		assert.Empty(t, waitingIDs(t, box), line)
	}
}

func TestAppendSelf(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	send := func(id string) (inbox.Receipt, error) {
		return now.box.AppendSelf(t.Context(), inbox.Message{ID: id, Text: "x"}, 0, 2)
	}
	for _, id := range []string{"a", "b"} {
		r, err := send(id)
		require.NoError(t, err)
		assert.True(t, r.Appended)
	}
	r, err := send("a")
	require.NoError(t, err, "it is there already")
	assert.False(t, r.Appended)
	_, err = send("c")
	var rate *inbox.RateError
	require.ErrorAs(t, err, &rate)
	assert.Equal(t, inbox.RateError{PerHour: 2, After: 30 * time.Minute}, *rate)
	now.set(noon.Add(-20 * time.Minute)) // the clock is set back
	_, err = send("c")
	require.ErrorAs(t, err, &rate)
	now.set(noon.Add(30 * time.Minute))
	_, err = send("c")
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, waitingIDs(t, now.box))
	now.set(noon.Add(-24 * time.Hour)) // the clock was a day ahead
	_, err = send("d")
	require.NoError(t, err)
	v, err := now.box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	assert.EqualValues(t, 4, v.SelfEnqueued().Count)
}
