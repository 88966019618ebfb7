package hook

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	recovery "heartbeat/recover"
)

// TestVerdict has one line for each thing that a Stop can say about the entry in flight. Facts that
// need a look at a file or a process are only given where the verdict may ask for them.
func TestVerdict(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	turn := func(c handed.Turn) func() handed.Turn { return func() handed.Turn { return c } }
	restarted := func(r recovery.Restart) func() recovery.Restart {
		return func() recovery.Restart { return r }
	}
	stop, shown := &claude.Input{}, &claude.Input{TranscriptPath: "t.jsonl"}
	on, onShown := &claude.Input{StopHookActive: true}, &claude.Input{StopHookActive: true, TranscriptPath: "t.jsonl"}
	// next is a later Stop of the same turn, with another input.
	next := facts{in: on, e: recovery.Evidence{Notes: true}, sameSession: true, samePrompt: true, namesPrompt: true, sameInput: no}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }
	// same has the input of the delivering Stop.
	same := with(next, func(f *facts) { f.sameInput, f.in, f.patient = yes, onShown, true })
	woken := facts{in: stop, e: recovery.Evidence{Wake: recovery.Wake{Woken: true, Before: "before"}}, sameSession: true, tookUp: no}
	prompted := facts{in: shown, e: recovery.Evidence{Prompt: recovery.Prompt{Prompted: true, Start: "start"}}, start: "start", sameSession: true, transcriptIsThere: yes, tookUp: no}
	held := facts{in: stop, e: recovery.Evidence{TaskWait: recovery.TaskWait{Held: true}}, sameSession: true, deliveryClient: yes, restarted: restarted(recovery.NotRestarted)}

	for name, c := range map[string]struct {
		facts
		want ruling
	}{
		"no client, flag file":    {facts{responded: true}, ruling{verdict: answered}},
		"no client, no flag file": {facts{}, ruling{verdict: orphaned}},

		"the answer":              {with(next, func(f *facts) { f.handedOver = true }), ruling{verdict: answered}},
		"of a hook without note":  {with(next, func(f *facts) { f.e.Notes = false }), ruling{verdict: answered}},
		"no note, text shown":     {with(next, func(f *facts) { f.turnAfter = turn(handed.WithText) }), ruling{verdict: answered}},
		"no note, another's turn": {with(next, func(f *facts) { f.turnAfter = turn(handed.WithoutText) }), ruling{verdict: orphaned}},
		"no note, nothing shown yet": {with(next, func(f *facts) {
			f.turnAfter, f.e.Transcript, f.patient = turn(handed.Unknown), "t.jsonl", true
		}), ruling{verdict: unsure, waitFor: "t.jsonl"}},
		"no note, nothing shown in time": {with(next, func(f *facts) {
			f.turnAfter, f.e.Transcript = turn(handed.Unknown), "t.jsonl"
		}), ruling{verdict: orphaned}},
		"no note, no transcript":       {with(next, func(f *facts) { f.turnAfter, f.patient = turn(handed.Unknown), true }), ruling{verdict: orphaned}},
		"nothing kept to compare with": {with(next, func(f *facts) { f.e.TranscriptSize, f.e.Notes = -1, false }), ruling{verdict: answered}},

		"started before the delivery":   {with(next, func(f *facts) { f.startedBefore, f.handedOver = true, true }), ruling{verdict: sameStop}},
		"the same input, in background": {with(same, func(f *facts) { f.background = true }), ruling{verdict: sameStop}},
		"the same input, no transcript": {with(same, func(f *facts) { f.in = on }), ruling{verdict: sameStop}},
		"the same input, answer shown":  {with(same, func(f *facts) { f.showsAnswer, f.handedOver = yes, true }), ruling{verdict: answered}},
		"the same input, not yet shown": {with(same, func(f *facts) { f.showsAnswer, f.transcriptIsThere = no, yes }), ruling{verdict: unsure, waitFor: "t.jsonl"}},
		"the same input, never shown": {with(same, func(f *facts) {
			f.showsAnswer, f.transcriptIsThere, f.patient = no, yes, false
		}), ruling{verdict: sameStop, unproven: true}},
		"the same input, no file yet": {with(same, func(f *facts) { f.showsAnswer, f.transcriptIsThere = no, no }), ruling{verdict: unsure, waitFor: "t.jsonl"}},

		"another prompt": {facts{in: stop, sameSession: true, restarted: restarted(recovery.NotRestarted)}, ruling{verdict: interrupted}},
		"another prompt, not known since when": {
			facts{in: stop, sameSession: true, restarted: restarted(recovery.RestartUnknown)}, ruling{verdict: interrupted},
		},
		"resumed":         {facts{in: stop, sameSession: true, restarted: restarted(recovery.Restarted)}, ruling{verdict: orphaned}},
		"another session": {facts{in: stop}, ruling{verdict: orphaned}},
		"an old client's new prompt": {facts{
			in: stop, sameSession: true, samePrompt: true, sameInput: no, restarted: restarted(recovery.NotRestarted),
		}, ruling{verdict: interrupted}},
		"an old client's answer": {facts{
			in: on, sameSession: true, samePrompt: true, sameInput: no,
		}, ruling{verdict: answered}},

		"waits for tasks":            {with(held, func(f *facts) { f.tasksRun = yes }), ruling{verdict: pending}},
		"its tasks are over":         {with(held, func(f *facts) { f.tasksRun = no }), ruling{verdict: answered}},
		"its tasks, another process": {with(held, func(f *facts) { f.deliveryClient = no }), ruling{verdict: interrupted}},
		"its tasks, resumed":         {with(held, func(f *facts) { f.restarted = restarted(recovery.Restarted) }), ruling{verdict: orphaned}},

		"woken, its turn":            {with(woken, func(f *facts) { f.e.Bound, f.samePrompt = true, true }), ruling{verdict: answered}},
		"woken, the turn before":     {with(woken, func(f *facts) { f.e.Bound, f.in = true, &claude.Input{PromptID: "before"} }), ruling{verdict: pending}},
		"woken, announcement missed": {with(woken, func(f *facts) { f.tookUp = yes }), ruling{verdict: answered}},
		"woken, not taken up":        {with(woken, func(f *facts) { f.sameClient = yes }), ruling{verdict: pending}},
		"woken, another client":      {with(woken, func(f *facts) { f.sameSession, f.sameClient = false, no }), ruling{verdict: orphaned}},
		"woken, then another prompt": {with(woken, func(f *facts) {
			f.e.Bound, f.sameClient, f.restarted = true, yes, restarted(recovery.NotRestarted)
		}), ruling{verdict: interrupted}},

		"prompt, its turn":       {with(prompted, func(f *facts) { f.e.BoundSeq, f.samePrompt = 1, true }), ruling{verdict: answered}},
		"prompt, binding missed": {with(prompted, func(f *facts) { f.tookUp = yes }), ruling{verdict: answered}},
		"prompt, not shown yet":  {with(prompted, func(f *facts) { f.patient = true }), ruling{verdict: unsure, waitFor: "t.jsonl"}},
		"prompt, never shown":    {with(prompted, func(f *facts) { f.restarted = restarted(recovery.RestartUnknown) }), ruling{verdict: interrupted}},
		"prompt, no transcript": {with(prompted, func(f *facts) {
			f.patient, f.transcriptIsThere, f.restarted = true, no, restarted(recovery.RestartUnknown)
		}), ruling{verdict: interrupted}},
		"prompt, the client before": {with(prompted, func(f *facts) { f.startedBefore, f.e.BoundSeq, f.samePrompt = true, 1, true }), ruling{verdict: pending}},
		"prompt, another start":     {with(prompted, func(f *facts) { f.start = "another" }), ruling{verdict: pending}},
		"prompt, another client":    {with(prompted, func(f *facts) { f.start, f.sameSession, f.startedBefore = "", false, true }), ruling{verdict: orphaned}},
		"prompt, its client was killed": {with(prompted, func(f *facts) {
			f.start, f.e.BoundSeq, f.restarted = "", 1, restarted(recovery.Restarted)
		}), ruling{verdict: orphaned}},
		"prompt, then another prompt": {with(prompted, func(f *facts) { f.e.BoundSeq, f.restarted = 1, restarted(recovery.NotRestarted) }), ruling{verdict: interrupted}},
		"prompt, waits for tasks": {with(prompted, func(f *facts) {
			f.e.BoundSeq, f.e.Held, f.restarted, f.deliveryClient, f.tasksRun = 1, true, restarted(recovery.NotRestarted), yes, yes
		}), ruling{verdict: pending}},
		"prompt, its tasks are over": {with(prompted, func(f *facts) {
			f.e.BoundSeq, f.e.Held, f.restarted, f.deliveryClient, f.tasksRun = 1, true, restarted(recovery.NotRestarted), yes, no
		}), ruling{verdict: answered}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, verdictOf(c.facts)) })
	}
}
