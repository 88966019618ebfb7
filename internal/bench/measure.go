package main

import "time"

// measure is one measurement.
type measure struct {
	name string
	long bool // only taken when asked for
	take func(*bench) (table, error)
}

var measures = []measure{
	{name: "size", take: measureSize},
	{name: "start", take: measureStart},
	{name: "meter", take: measureMeter},
	{name: "tick", take: measureTick},
	{name: "codex", take: measureCodex},
	{name: "bigfile", take: measureBigfile},
	{name: "send", take: measureSend},
	{name: "persist", take: measurePersist},
	{name: "rewake", take: measureRewake},
	{name: "waiters", take: measureWaiters},
	{name: "watch", take: measureWatch},
	{name: "launch", take: measureLaunch},
	{name: "transcript", take: measureTranscript},
	{name: "host", take: measureHost},
	{name: "mcp", take: measureTools},
	{name: "run", take: measureOrchestrated, long: true},
	{name: "million", take: measureMillion, long: true},
	{name: "fleet", take: measureFleet, long: true},
	{name: "drain", take: measureDrain, long: true},
	{name: "day", take: measureDay, long: true},
}

func names() (all []string) {
	for _, m := range measures {
		all = append(all, m.name)
	}
	return all
}

// plan is how much of everything to do.
type plan struct {
	pairs        int           // ticks, each with a run of the baseline
	alone        int           // ticks without the baseline in between, and runs of the baseline without ticks
	bigLines     int           // of the big inbox
	rounds       int           // of ticks on the big inbox
	sends        int           // entries by each kind of writer
	waits        int           // of a hook that persists, and of one in the background
	asleep       time.Duration // how long one in the background is watched
	notices      int           // of the file that ends a session
	floods       int           // through a terminal, by each program
	flood        int           // bytes of each
	crowds       int           // of producers that wait for their answers at once
	crowd        int           // producers in each
	idle         time.Duration // how long they wait before the first answer
	before       int           // messages that a hosted session has already
	stored       int           // messages that it gets then
	hosts        int           // that are started, by each program
	orchestrated int           // stops of a run
	million      int           // entries of the inbox that is asked about
	looks        int           // of each kind
	// watched is how many inboxes a live view shows, of watchedEntries each.
	watched, watchedEntries int
	drain                   int // entries
	day                     int // entries
	killEvery               int // ticks of the day
	fleet                   fleetPlan
}

var (
	usual = plan{
		watched: 50, watchedEntries: 10_000,
		pairs: 400, alone: 200, bigLines: 488_282, rounds: 40, sends: 10_000, waits: 200, asleep: time.Minute,
		notices: 200, floods: 5, flood: 200_000_000, before: 1_000, stored: 200, hosts: 15, orchestrated: 30,
		crowds: 3, crowd: 50, idle: 5 * time.Second, million: 1_000_000, looks: 9, drain: 100_000, day: 50_000, killEvery: 200,
		fleet: fleetPlan{agents: 50, messages: 2_000, alone: 300, whole: 200, rounds: 5, asleep: 2 * time.Minute},
	}
	quick = plan{
		watched: 10, watchedEntries: 1_000,
		before: 1_000, stored: 20, hosts: 2, orchestrated: 3,
		pairs: 50, alone: 20, bigLines: 62_500, rounds: 4, sends: 400, waits: 20, asleep: 6 * time.Second,
		notices: 20, floods: 1, flood: 50_000_000,
		crowds: 1, crowd: 50, idle: time.Second, million: 50_000, looks: 3, drain: 1_000, day: 1_000, killEvery: 200,
		fleet: fleetPlan{agents: 5, messages: 200, alone: 20, whole: 20, rounds: 2, asleep: 10 * time.Second},
	}
	// fullMessages are those of a fleet with -full.
	fullMessages = 10_000
)
