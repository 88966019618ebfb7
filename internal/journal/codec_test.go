package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/flat"
)

// The bytes of a record may not change: journals of earlier versions are read as
// they are, and earlier versions read ours.
const (
	fullRecord  = `{"v":1,"seq":2,"inbox":"in\u003cb\u003eox\n.jsonl","cursor":3,"anchor_start":4,"anchor_sha256":"a5","digest_start":6,"digest_end":7,"digest":"d8","seen_size":9,"seen_mtime_ns":10,"seen_file":"f11","seen_young":true,"seen_place":"p12","tail_start":13,"tail_sha256":"t14","own_start":15,"own_end":16,"own_sha256":"o17","lock":"l18","lock_mtime_ns":19,"boot":"b20","synced_to":21,"in_flight":{"entry_id":"22"},"handed":true,"redeliver":{"entry_id":"23"},"session":"s24","acknowledged":25,"sessions":[{"id":"26"}],"paused":{"at":"27"},"totals":{"delivered":28},"backoff":{"streak":29},"waiter":{"name":"30"},"punching_to":31,"canceled":"1-2-3-32","account":{"day":"49"},"results_end":34,"results_generation":35,"dead_letters_end":36,"dead_letters_generation":37,"events_end":38,"events_generation":39,"scheduled_end":40,"scheduled_generation":41,"costs_end":50,"costs_generation":51,"queue_generation":42,"appends":[{"file":".results.jsonl","at":43,"generation":44,"newline":true,"line":{"reply":"45"}},{"file":".dead-letter.jsonl","at":46,"generation":0,"unschedule":"u47","line":{}},{"file":".events.jsonl","at":0,"generation":0,"line":{}},{"file":".scheduled.jsonl","at":0,"generation":0,"line":{}},{"file":".costs.jsonl","at":0,"generation":0,"line":{}},{"file":"queue","at":48,"generation":0,"promoted":true,"data":"/yBkYXRhIA=="}]}`
	emptyRecord = `{"v":0,"seq":0,"inbox":"","cursor":0,"anchor_start":0,"digest_start":0,"digest_end":0,"seen_size":0,"seen_mtime_ns":0,"lock":"","lock_mtime_ns":0,"boot":"","synced_to":0,"session":"","acknowledged":0,"results_end":0,"results_generation":0,"dead_letters_end":0,"dead_letters_generation":0,"events_end":0,"events_generation":0,"scheduled_end":0,"scheduled_generation":0,"queue_generation":0}`
)

func full() *Record {
	return &Record{
		Version: 1, Seq: 2, Inbox: "in<b>ox\n.jsonl", Cursor: 3,
		Sighting: Sighting{
			AnchorStart: 4, AnchorSum: "a5", DigestStart: 6, DigestEnd: 7, Digest: "d8",
			SeenSize: 9, SeenMtime: 10, SeenFile: "f11", SeenYoung: true, SeenPlace: "p12",
			TailStart: 13, TailSum: "t14", OwnStart: 15, OwnEnd: 16, OwnSum: "o17",
			SyncedTo: 21, Punching: 31, QueueGeneration: 42,
		},
		Origin: Origin{Lock: "l18", LockMtime: 19, Boot: "b20"},
		Entries: Entries{
			InFlight: json.RawMessage(`{"entry_id":"22"}`), Handed: true, Redeliver: json.RawMessage(`{"entry_id":"23"}`),
			Canceled: json.RawMessage(`"1-2-3-32"`),
		},
		Workers: Workers{
			Session: "s24", Acknowledged: 25, Sessions: json.RawMessage(`[{"id":"26"}]`), Waiter: json.RawMessage(`{"name":"30"}`),
		},
		Holds:  Holds{Paused: json.RawMessage(`{"at":"27"}`), Backoff: json.RawMessage(`{"streak":29}`)},
		Totals: json.RawMessage(`{"delivered":28}`), Account: json.RawMessage(`{"day":"49"}`),
		Ends: [len(kinds)]End{Results: {34, 35}, DeadLetters: {36, 37}, Events: {38, 39}, Scheduled: {40, 41}, Costs: {50, 51}},
		Appends: []Line{
			{Kind: Results, At: 43, Generation: 44, Newline: true, JSON: json.RawMessage(`{"reply":"45"}`)},
			{Kind: DeadLetters, At: 46, Unschedule: "u47", JSON: json.RawMessage(`{}`)},
			{Kind: Events, JSON: json.RawMessage(`{}`)},
			{Kind: Scheduled, JSON: json.RawMessage(`{}`)},
			{Kind: Costs, JSON: json.RawMessage(`{}`)},
			{Kind: Queue, At: 48, Promoted: true, Data: []byte("\xff data ")},
		},
	}
}

func TestARecordIsWrittenAsEver(t *testing.T) {
	assert.Equal(t, fullRecord, string(full().encode()))
	assert.Equal(t, emptyRecord, string(new(Record).encode()))
	assert.Equal(t, `{"followed":2,"boot":"b"}`, encodedMark(mark{Followed: 2, Boot: "b"}))
	assert.Equal(t, `{"followed":2,"boot":"b","handed":true}`, encodedMark(mark{Followed: 2, Boot: "b", Handed: true}))
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	got, err := decodeRecord([]byte(fullRecord), true)
	require.NoError(t, err)
	assert.Equal(t, full(), got)
	got, err = decodeRecord([]byte(fullRecord), false)
	require.NoError(t, err)
	want := full()
	want.Appends = nil
	assert.Equal(t, want, got)
	got, err = decodeRecord([]byte(emptyRecord), true)
	require.NoError(t, err)
	assert.Equal(t, new(Record), got)
	assert.Equal(t, &mark{Followed: 2, Boot: "b", Handed: true}, decodeMark([]byte(`{"handed":true,"boot":"b","followed":2}`)))
}

// TestALineForNoFileIsNoDeadLetter holds a record that names an unknown file to be
// an error: to take it for one of the files would write there what is not its own.
func TestALineForNoFileIsNoDeadLetter(t *testing.T) {
	for _, name := range []string{".letters.jsonl", "", "Queue"} {
		_, err := decodeRecord([]byte(`{"seq":1,"appends":[{"file":"`+name+`","at":0,"line":{}}]}`), true)
		assert.ErrorContains(t, err, "not a file of an inbox", "%q", name)
	}
}

func TestKindsHaveTheirNames(t *testing.T) {
	for k := range kinds {
		kind, err := kindOf(Kind(k).Name())
		require.NoError(t, err)
		assert.Equal(t, Kind(k), kind)
		assert.Contains(t, recordOrder, kind, "a record must say where it ends")
	}
	kind, err := kindOf(Queue.Name())
	require.NoError(t, err)
	assert.Equal(t, Queue, kind)
}

func FuzzRecordCodec(f *testing.F) {
	f.Add([]byte(fullRecord))
	f.Add([]byte(emptyRecord))
	f.Add([]byte(`{"appends":[{"file":"queue","data":"AA=="},{"file":"queue","data":"!"}]}`))
	f.Add([]byte(`{"appends":{}}`))
	f.Add([]byte(`{"seq":"1"}`))
	f.Add([]byte(`{"inbox":"` + strings.Repeat(`\u00e9`, 20) + `","sessions":[ 1 ,
		2 ],"seq":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decodeRecord(body, true)
		if err != nil {
			return
		}
		written := r.encode()
		require.True(t, json.Valid(written), "%q", written)
		require.NotContains(t, string(written), "\n")
		again, err := decodeRecord(written, true)
		require.NoError(t, err)
		assert.Equal(t, written, again.encode())
		for i, l := range r.Appends {
			if l.Data != nil {
				assert.Equal(t, l.Bytes(), again.Appends[i].Bytes(), "what is written, to the byte")
			}
		}
		short, err := decodeRecord(written, false)
		require.NoError(t, err)
		short.Appends = again.Appends
		assert.Equal(t, again, short)
	})
}

func encodedMark(m mark) string {
	var o flat.Object
	m.members(flat.To(&o))
	return string(o.End())
}
