package meter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/price"
)

// Two entries in a chain of blocks: the first turn's price is known once the client
// has said a total with its last request.
func TestAChainOfTurns(t *testing.T) {
	r := newRig(t)
	s := r.advance(r.started("a", "0"))
	assert.True(t, s.Spent.Dollars)
	assert.True(t, s.Spent.IsZero())

	r.write(prompt("one"))
	r.write(r.answer(1000, 100))
	stop := r.write(feedback("two"))
	_, _, known := r.advance(r.silent()).Before(stop)
	assert.False(t, known, "the total with the first request is to come")

	s = r.advance(r.said("a", "0.006", 1, 1000, 100))
	spent, divided, known := s.Before(stop)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, price.Amount{Nanos: 6_000_000, Dollars: true, Tokens: price.Tokens{Input: 1000, Output: 100}, Requests: 1}, spent)
	assert.Equal(t, "claude-opus-5-5", s.Model)

	r.write(r.answer(2000, 200), r.part(2000, 200), toolResult, r.answer(3000, 300))
	s = r.advance(r.said("a", "0.036", 3, 3000, 300))
	assert.Equal(t, price.Amount{Nanos: 36_000_000, Dollars: true, Tokens: price.Tokens{Input: 6000, Output: 600}, Requests: 3}, s.Spent)
	again, _, known := s.Before(stop)
	assert.True(t, known)
	assert.Equal(t, spent, again)
	_, ok := s.Mark(stop + 1)
	assert.False(t, ok)
}

// The first line of all may be a user's.
func TestTheFirstLineIsAMark(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	m, ok := r.advance(r.silent()).Mark(0)
	require.True(t, ok)
	assert.Zero(t, m.Offset)
	assert.True(t, m.Before.IsZero())
}

// A reading comes before the line of the request that it is for, amid a fast chain in
// which all requests look the same.
func TestTheTranscriptLags(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"))
	r.advance(r.said("a", "0.001", 1, 10, 1)) // its line is not there
	r.write(r.answer(10, 1))
	second := r.write(feedback("two"))
	r.advance(r.said("a", "0.003", 2, 10, 1)) // the second's is not
	s := r.advance(r.silent())
	spent, divided, known := s.Before(second)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, usd(t, "0.001"), spent.Nanos)
	assert.Equal(t, usd(t, "0.003"), s.Spent.Nanos)

	r.write(r.answer(10, 1))
	third := r.write(feedback("three"))
	s = r.advance(r.said("a", "0.006", 3, 10, 1))
	spent, divided, known = s.Before(third)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, usd(t, "0.003"), spent.Nanos)
}

// Readings are missed: what is known for two turns at once is divided, and says so.
func TestMissedReadingsAreDivided(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(1000, 0))
	second := r.write(feedback("two"))
	r.write(r.answer(3000, 0))
	third := r.write(feedback("three"))
	s := r.advance(r.said("a", "0.004", 2, 3000, 0))
	spent, divided, known := s.Before(second)
	assert.True(t, known && divided)
	assert.Equal(t, usd(t, "0.001"), spent.Nanos)
	spent, divided, _ = s.Before(third)
	assert.True(t, divided)
	assert.Equal(t, usd(t, "0.004"), spent.Nanos)
}

// A client that does not count its requests shows by their usage whether the
// transcript has the last one.
func TestUsageTellsWithoutACount(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "0.001", -1, 10, 1))
	second := r.write(feedback("two"))
	s := r.advance(r.said("a", "0.003", -1, 20, 2))
	spent, _, known := s.Before(second)
	assert.True(t, known)
	assert.Equal(t, usd(t, "0.001"), spent.Nanos)
	r.write(r.answer(20, 2))
	third := r.write(feedback("three"))
	spent, divided, known := r.advance(r.silent()).Before(third)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, usd(t, "0.003"), spent.Nanos)
}

// Facts of the real client: after an orderly end the total goes on, from what the
// transcript's last line says.
func TestResumedAfterAnOrderlyEnd(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	// The process ends before its status line said anything.
	r.write(stated("0.0168"), stated("0.0168"))
	s := r.advance(r.started("b", "0.0168"))
	assert.Equal(t, usd(t, "0.0168"), s.Spent.Nanos)
	assert.Equal(t, usd(t, "0.0168"), s.Resumed)
	second := r.write(prompt("two"), r.answer(10, 1))
	s = r.advance(r.said("b", "0.0336", 1, 10, 1))
	assert.Equal(t, usd(t, "0.0336"), s.Spent.Nanos)
	spent, _, known := s.Before(second)
	assert.True(t, known)
	assert.Equal(t, usd(t, "0.0168"), spent.Nanos)
	r.write(stated("0.0336"), stated("0.0336"))
	assert.Equal(t, usd(t, "0.0336"), r.advance(r.final()).Spent.Nanos)
}

// After a kill the client has forgotten what it said since its last orderly end.
func TestResumedAfterAKill(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "0.0168", 1, 10, 1))
	s := r.advance(r.started("b", "0"))
	assert.Equal(t, usd(t, "0.0168"), s.Spent.Nanos)
	r.write(prompt("two"), r.answer(10, 1))
	s = r.advance(r.said("b", "0.0168", 1, 10, 1))
	assert.Equal(t, usd(t, "0.0336"), s.Spent.Nanos)
	r.write(stated("0.0168"), stated("0.0168")) // its own total only
	assert.Equal(t, usd(t, "0.0336"), r.advance(r.started("c", "0.0168")).Spent.Nanos)
	assert.Equal(t, usd(t, "0.0436"), r.advance(r.said("c", "0.0268", 1, 0, 0)).Spent.Nanos)
}

// A process that nobody read goes on from less than one that was killed.
func TestAStatedTotalBelowAReading(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "5", 1, 10, 1))
	r.write(prompt("two"), r.answer(10, 1), stated("2"), stated("2"))
	assert.Equal(t, usd(t, "7"), r.advance(r.silent()).Spent.Nanos)
}

func TestTwoProcessesInTurns(t *testing.T) {
	r := newRig(t)
	r.advance(r.said("a", "3", -1, 0, 0))
	r.advance(r.said("b", "0.5", -1, 0, 0))
	r.advance(r.said("a", "3.5", -1, 0, 0))
	assert.Equal(t, usd(t, "4.25"), r.advance(r.said("b", "0.75", -1, 0, 0)).Spent.Nanos)
}

// One reading below the last came late; two mean that the client began anew.
func TestFallingTotals(t *testing.T) {
	r := newRig(t)
	r.advance(r.said("a", "3", -1, 0, 0))
	assert.Equal(t, usd(t, "3"), r.advance(r.said("a", "2", -1, 0, 0)).Spent.Nanos)
	assert.Equal(t, usd(t, "4"), r.advance(r.said("a", "4", -1, 0, 0)).Spent.Nanos)
	r.advance(r.said("a", "1", -1, 0, 0))
	assert.Equal(t, usd(t, "4.5"), r.advance(r.said("a", "1.5", -1, 0, 0)).Spent.Nanos)
	assert.Equal(t, usd(t, "5"), r.advance(r.said("a", "2", -1, 0, 0)).Spent.Nanos)
}

// A summary is in the total and not in the transcript.
func TestCompaction(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "0.001", 1, 10, 1))
	zero := r.said("a", "0.013", 3, 0, 0) // counted as two requests more
	zero.Usage = &price.Tokens{}
	compacted := r.write(`{"type":"user","isCompactSummary":true,"isSidechain":false,"message":{"role":"user","content":"summary"}}`)
	s := r.advance(zero)
	assert.Equal(t, usd(t, "0.013"), s.Spent.Nanos)
	r.write(r.answer(5, 1))
	next := r.write(feedback("two"))
	s = r.advance(r.said("a", "0.014", 4, 5, 1))
	spent, divided, known := s.Before(next)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, usd(t, "0.014"), spent.Nanos)
	spent, _, _ = s.Before(compacted)
	assert.Equal(t, usd(t, "0.001"), spent.Nanos)
}

// The total with a summary comes before the summary's line: it is not the last turn's.
func TestTheSummaryLags(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "0.001", 1, 10, 1))
	zero := r.said("a", "0.013", 3, 0, 0)
	zero.Usage = &price.Tokens{}
	assert.Equal(t, usd(t, "0.013"), r.advance(zero).Spent.Nanos)
	compacted := r.write(`{"type":"user","isCompactSummary":true,"isSidechain":false,"message":{"role":"user","content":"summary"}}`)
	r.write(prompt("two"), r.answer(5, 1))
	s := r.advance(r.said("a", "0.014", 4, 5, 1))
	assert.Equal(t, usd(t, "0.014"), s.Spent.Nanos)
	spent, divided, known := s.Before(compacted)
	assert.True(t, known)
	assert.False(t, divided)
	assert.Equal(t, usd(t, "0.001"), spent.Nanos)

	r.advance(zero)
	zero.Total = usd(t, "0.02")
	r.advance(zero)
	s = r.advance(r.final())
	assert.Equal(t, usd(t, "0.02"), s.Spent.Nanos, "no line came")
}

// The client counts one request that the transcript never gets.
func TestCountsThatDiffer(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.said("a", "0.001", 1, 10, 1))
	r.write(r.answer(20, 2))
	next := r.write(feedback("two"))
	s := r.advance(r.said("a", "0.003", 3, 20, 2))
	spent, _, known := s.Before(next)
	assert.True(t, known)
	assert.Equal(t, usd(t, "0.003"), spent.Nanos)

	// Even where all look the same.
	r.write(r.answer(20, 2))
	for i := range int64(6) {
		next = r.write(feedback("more"))
		s = r.advance(r.said("a", "0.004", 5+i, 20, 2))
		r.write(r.answer(20, 2))
	}
	_, _, known = s.Before(next)
	assert.True(t, known)
	assert.Equal(t, usd(t, "0.004"), s.Spent.Nanos)
}

// Under -p nobody reads totals: the tokens are known at once, the dollars at the end.
func TestOnlyTheEndKnowsDollars(t *testing.T) {
	r := newRig(t)
	first := r.write(prompt("one"), r.answer(1000, 0))
	second := r.write(feedback("two"), r.answer(3000, 0))
	third := r.write(feedback("three"), r.answer(4000, 0))
	s := r.advance(r.silent())
	assert.False(t, s.Spent.Dollars)
	spent, _, known := s.Before(third)
	assert.True(t, known, "no dollars are to be expected")
	assert.Equal(t, price.Amount{Tokens: price.Tokens{Input: 4000}, Requests: 2}, spent)
	r.write(stated("0.008"))
	s = r.advance(r.final())
	for at, want := range map[int64]string{first: "0", second: "0.001", third: "0.004"} {
		spent, _, known := s.Before(at)
		assert.True(t, known)
		assert.True(t, spent.Dollars)
		assert.Equal(t, usd(t, want), spent.Nanos)
	}
	_, divided, _ := s.Before(second)
	assert.True(t, divided && s.Divided)
}

// The host knows the total from the client's last line of output.
func TestATotalAtTheEnd(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(1000, 0))
	last := r.said("p", "0.01", -1, 0, 0)
	last.Final = true
	s := r.advance(last)
	assert.Equal(t, usd(t, "0.01"), s.Spent.Nanos)
	// The client writes the same total down as it ends.
	r.write(stated("0.01"), stated("0.01"))
	assert.Equal(t, usd(t, "0.01"), r.advance(r.final()).Spent.Nanos)
}

// A reading whose request never arrives is given out at the end.
func TestTheEndGivesEverythingOut(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"), r.answer(10, 1))
	next := r.write(feedback("two"))
	r.advance(r.said("a", "0.002", 2, 20, 2))
	s := r.advance(r.silent())
	_, _, known := s.Before(next)
	assert.False(t, known)
	spent, _, known := r.advance(r.final()).Before(next)
	assert.True(t, known)
	assert.Equal(t, usd(t, "0.002"), spent.Nanos)
}

func TestLinesOfOneMessage(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), r.part(10, 1), r.part(10, 50), r.part(10, 20))
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{Tokens: price.Tokens{Input: 10, Output: 50}, Requests: 1}, s.Spent)
	r.write(r.part(10, 60))
	assert.Equal(t, int64(60), r.advance(r.silent()).Spent.Tokens.Output)
}

func TestWhatIsNoAnswer(t *testing.T) {
	r := newRig(t)
	r.write(
		`{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":1}}}`,
		`{"type":"assistant","isApiErrorMessage":true,"message":{"id":"x","model":"m","usage":{"input_tokens":1}}}`,
		`{"type":"assistant","message":{"id":"x","model":"m"}}`, `{"type":"assistant"}`, `{"type":"assistant","message":5}`,
		`{"type":"system","content":"\"assistant\" \"user\""}`, `"assistant"`, `[{"type":"user"}]`, `{"type":"user`, `"assistant`,
		`{"type":"cost-state","totalCostUSD":-1}`, `{"type":"cost-state","totalCostUSD":1e400}`, `{"type":"cost-state","totalCostUSD":"1"}`, `{"type":"cost-state"}`,
		"\x00\x00", "",
	)
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{}, s.Spent)
	r.write(`{"type":"assistant","message":{"id":"y","model":"m","usage":{"input_tokens":-5,"output_tokens":99999999999999999999,"cache_read_input_tokens":9000000000000000000}}}`)
	assert.Equal(t, price.Tokens{CacheRead: 1_000_000_000}, r.advance(r.silent()).Spent.Tokens)
}

func TestALineThatIsBeingWritten(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"))
	whole := r.answer(10, 1) + "\n"
	r.append(whole[:50])
	assert.True(t, r.advance(r.silent()).Spent.IsZero())
	r.append(whole[50:])
	assert.Equal(t, int64(1), r.advance(r.silent()).Spent.Requests)
	assert.Equal(t, int64(1), r.advance(r.silent()).Spent.Requests)
}

// Subagents count in the turn in which they asked.
func TestSubagents(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	at := func(line, clock string) string { return replaceTime(line, clock) }
	r.write(at(prompt("one"), "10:00:00"), r.answer(100, 10))
	second := r.write(at(prompt("two"), "10:05:00"))
	r.agent("agent-1.jsonl", at(message("s1", 1000, 100), "10:04:00"), at(message("s1", 1000, 100), "10:04:00"), at(message("s2", 7, 7), "10:06:00"))
	r.agent("agent-2.jsonl", at(message("s3", 500, 50), "10:04:30"))
	r.agent("agent-2.meta.json", "{}")
	s := r.advance(r.silent())
	spent, _, _ := s.Before(second)
	assert.Equal(t, price.Tokens{Input: 1600, Output: 160}, spent.Tokens)
	assert.Equal(t, int64(3), spent.Requests)
	assert.Equal(t, price.Tokens{Input: 1607, Output: 167}, s.Spent.Tokens)
	r.agent("agent-1.jsonl", at(message("s4", 1, 1), "10:07:00"))
	assert.Equal(t, price.Tokens{Input: 1608, Output: 168}, r.advance(r.silent()).Spent.Tokens)
	s = r.advance(r.said("a", "0.5", 1, 100, 10))
	assert.Equal(t, usd(t, "0.5"), s.Spent.Nanos)
	_, divided, known := s.Before(second)
	assert.True(t, known && divided)
}

func TestManyMarks(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	last := int64(0)
	for i := range 500 {
		last = r.write(feedback("more"))
		r.write(r.answer(10, 1))
		if i%3 == 0 {
			r.advance(r.said("a", usdOf(i+1), int64(i+1), 10, 1))
		}
	}
	s := r.advance(r.said("a", "0.500", 500, 10, 1))
	assert.Len(t, s.Marks, 32)
	spent, _, known := s.Before(last)
	assert.True(t, known)
	assert.Equal(t, int64(499), spent.Requests)
	assert.Equal(t, usd(t, "0.5"), s.Spent.Nanos)
	for _, m := range s.Marks {
		assert.Equal(t, m.Before.Requests*1_000_000, m.Before.Nanos)
	}
}

// A thousand turns of which nobody read anything before the end.
func TestManyTurnsAtOnce(t *testing.T) {
	r := newRig(t)
	var offsets []int64
	for range 1000 {
		offsets = append(offsets, r.write(feedback("more")))
		r.write(r.answer(10, 1))
	}
	r.write(stated("1"))
	s := r.advance(r.final())
	assert.Equal(t, usd(t, "1"), s.Spent.Nanos)
	assert.Equal(t, int64(1000), s.Spent.Requests)
	for i, at := range offsets[len(offsets)-32:] {
		spent, _, known := s.Before(at)
		assert.True(t, known)
		assert.Equal(t, int64(1000-32+i), spent.Requests)
		assert.Equal(t, spent.Requests*1_000_000, spent.Nanos)
	}
}
