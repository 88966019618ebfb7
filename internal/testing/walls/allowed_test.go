package walls

// allowed lists, for each package, the packages of this project that it may
// import; a package without a line of its own falls under the longest "/..."
// line that covers it. Test files are exempt.
//
// Before you add a name here, ask whether the code wants to live elsewhere: the
// queue knows nothing of Claude, hooks or terminals, and what drives an
// orchestrator knows nothing of inboxes.
var allowed = map[string]string{
	// What every other package may rest on.
	"internal/platform":         "",
	"internal/words":            "",
	"internal/flat":             "",
	"internal/money/price":      "inbox internal/flat internal/words",
	"internal/money/account":    "inbox internal/flat internal/money/price internal/words",
	"internal/money/meter":      "internal/disk internal/flat internal/lines internal/money/account internal/money/price internal/words inbox internal/agent internal/claude internal/machine",
	"internal/money/book":       "inbox internal/flat internal/money/account internal/money/meter internal/money/price internal/words",
	"internal/disk":             "internal/platform",
	"internal/machine":          "internal/platform",
	"internal/machine/signals":  "",
	"internal/machine/guardian": "internal/machine",
	"internal/machine/socket":   "internal/disk",

	// The queue.
	"internal/lines":   "",
	"internal/journal": "internal/disk internal/flat internal/machine internal/lines",
	"inbox/outcomes":   "internal/machine inbox internal/journal internal/lines internal/disk internal/flat internal/words",
	"inbox":            "internal/journal internal/lines internal/disk internal/flat internal/machine internal/words",

	// What is known of one client.
	"internal/agent/handed":     "internal/disk internal/lines",
	"internal/claude":           "internal/agent/handed internal/flat internal/platform internal/words",
	"internal/codex":            "internal/agent/handed internal/flat internal/machine",
	"internal/agent":            "internal/agent/handed internal/claude internal/codex internal/flat",
	"internal/screen":           "",
	"internal/codex/configfile": "internal/claude/settings",
	"internal/claude/settings":  "internal/disk internal/words",

	// What becomes of an entry whose answer is in doubt.
	"recover": "inbox internal/check internal/money/account internal/money/meter internal/money/price orchestrate/effect internal/claude internal/disk internal/flat internal/machine internal/words internal/agent internal/agent/handed",

	// Orchestration.
	"orchestrate": "inbox inbox/outcomes recover internal/cli internal/disk internal/machine internal/money/book internal/money/price internal/words orchestrate/babysitter" +
		" orchestrate/effect orchestrate/prompt orchestrate/run orchestrate/schema",
	"orchestrate/babysitter": "internal/disk internal/machine internal/machine/guardian internal/words orchestrate/effect orchestrate/run",
	"orchestrate/effect":     "inbox", // a hook with no run to drive links this and nothing else of orchestrate
	"orchestrate/prompt":     "internal/words",
	"orchestrate/run":        "internal/disk internal/words",
	"orchestrate/schema":     "",

	// What the commands are made of.
	"internal/check":       "inbox internal/words",
	"internal/cli":         "inbox internal/check internal/money/price recover internal/disk internal/words orchestrate/effect",
	"internal/cli/layout":  "internal/words",
	"internal/cli/program": "internal/cli internal/cli/layout internal/disk internal/words",
	"internal/claim":       "inbox recover internal/disk internal/machine internal/words",
	"internal/see":         "internal/money/account inbox inbox/outcomes internal/agent internal/disk internal/machine internal/money/book internal/words orchestrate orchestrate/run recover",

	"internal/notify":             "inbox inbox/outcomes internal/disk internal/see internal/words internal/machine internal/machine/guardian",
	"internal/consumer":           "inbox inbox/outcomes internal/machine internal/machine/guardian internal/notify internal/words",
	"internal/gate":               "",
	"testdata/embedding":          "inbox/outcomes inbox",
	"internal/mcp":                "inbox internal/command/history internal/cli/... internal/disk internal/gate internal/claude/settings internal/machine/signals internal/machine/socket internal/money/price internal/task internal/words",
	"internal/task":               "inbox internal/cli internal/words orchestrate recover",
	"internal/hook":               "internal/money/account internal/agent internal/check internal/money/price internal/money/meter inbox recover internal/claude internal/cli internal/disk internal/flat internal/machine internal/words orchestrate/effect", // what each turn starts
	"internal/hook/runs":          "internal/hook inbox internal/claude internal/cli internal/words orchestrate orchestrate/run",
	"internal/command/...":        "internal/lines internal/money/... internal/consumer internal/hook internal/hook/runs internal/launch internal/notify internal/see inbox inbox/outcomes recover internal/claude/... internal/codex/configfile internal/cli/... internal/disk internal/flat internal/money/price internal/machine/... internal/words internal/hosting/folder orchestrate/... internal/testing/agent internal/mcp internal/watch internal/supervise internal/supervise/sharing internal/supervise/client internal/check internal/command/...",
	"internal/launch":             "inbox internal/consumer internal/see internal/claude internal/claude/settings internal/cli/... internal/disk internal/machine/... internal/notify internal/supervise/... internal/words",
	"internal/supervise/...":      "internal/agent inbox/outcomes internal/command/history internal/see internal/money/book internal/money/meter internal/claim internal/notify inbox recover internal/claude/... internal/screen internal/cli/... internal/disk internal/flat internal/money/price internal/machine/... internal/words orchestrate/... internal/supervise/...",
	"internal/supervise/sharing":  "internal/disk internal/machine internal/machine/guardian internal/machine/socket internal/screen internal/supervise/terminal internal/words",
	"internal/supervise/terminal": "internal/disk internal/machine/... internal/words",

	// The session host. The hook links nothing of it.
	"internal/hosting/config": "internal/cli internal/disk internal/flat internal/hosting/folder internal/words internal/money/price",
	"internal/hosting/folder": "internal/disk internal/flat internal/hosting/store internal/machine",
	"internal/hosting/store":  "internal/disk internal/lines",
	"internal/hosting/proxy":  "internal/gate internal/hosting/config internal/hosting/folder internal/words",
	"internal/hosting":        "inbox recover internal/claude/settings internal/cli/... internal/disk internal/flat internal/machine internal/machine/guardian internal/machine/signals internal/hosting/... internal/lines internal/notify internal/money/price internal/words internal/see",
	"internal/hosting/queue":  "internal/money/account inbox/outcomes internal/hosting/folder internal/hosting/stream internal/money/meter inbox internal/claim internal/claude internal/claude/settings internal/cli internal/disk internal/machine internal/words orchestrate/effect recover internal/agent internal/supervise/client",
	"internal/hosting/attach": "inbox internal/disk internal/hosting/stream internal/machine/socket",
	// The session host.
	"internal/hosting/process": "internal/machine internal/machine/guardian",
	"internal/hosting/session": "inbox/outcomes inbox internal/check internal/see internal/claim internal/claude internal/claude/settings internal/cli internal/disk internal/machine internal/machine/guardian internal/machine/signals internal/hosting/attach internal/hosting/config internal/hosting/guild internal/hosting/folder internal/hosting/process internal/hosting/proxy internal/hosting/queue internal/hosting/store internal/hosting/stream internal/lines internal/notify internal/money/price internal/words recover internal/supervise internal/supervise/client internal/supervise/terminal internal/agent",
	"internal/hosting/guild":   "internal/flat internal/hosting/config internal/hosting/folder internal/disk internal/hosting/store",

	// The live view.
	"internal/watch": "internal/money/account inbox inbox/outcomes internal/cli internal/cli/layout internal/cli/program internal/disk internal/machine/signals internal/notify internal/money/price internal/see internal/words internal/money/book internal/command/history internal/machine recover",

	// The fleet. Nothing else links NATS.
	"internal/fleet/message":  "inbox internal/money/price",
	"internal/fleet/link":     "internal/disk internal/machine internal/words",
	"internal/fleet/setup":    "internal/fleet/link internal/fleet/message internal/words",
	"internal/fleet/upstream": "inbox internal/disk internal/fleet/link internal/fleet/message internal/fleet/setup internal/machine internal/money/price internal/words",
	"internal/fleet/worker":   "inbox/outcomes inbox internal/claim internal/cli internal/fleet/link internal/fleet/message internal/fleet/setup internal/fleet/upstream internal/machine internal/notify internal/see internal/words recover",
	"internal/fleet/verbs":    "inbox internal/money/price internal/cli internal/cli/... internal/disk internal/fleet/... internal/machine/signals internal/see internal/words recover",

	// The commands.
	"cmd/heartbeat-host":   "internal/hosting",
	"cmd/heartbeat-nats":   "internal/fleet/verbs",
	"cmd/heartbeat":        "internal/command internal/cli",
	"cmd/heartbeat-stop":   "internal/hook",
	"cmd/heartbeat-launch": "internal/launch",

	// The session host.
	"internal/hosting/stream": "internal/claude internal/flat internal/hosting/folder internal/hosting/store internal/words",

	// Rigs, which nothing that is shipped imports (but for the demo's agent).
	"internal/bench/...":             "internal/testing/script inbox internal/screen internal/fleet/message internal/fleet/setup internal/hosting/folder internal/hosting/stream internal/testing/agent internal/testing/days internal/testing/fleet",
	"internal/testing/action":        "",
	"internal/testing/agent":         "internal/machine",
	"internal/testing/babysitter":    "",
	"internal/testing/build":         "internal/testing/script",
	"internal/testing/client":        "internal/testing/action internal/testing/model internal/testing/script",
	"internal/testing/crash":         "internal/disk",
	"internal/testing/days":          "internal/testing/agent",
	"internal/testing/faults":        "",
	"internal/testing/fleet":         "internal/testing/build",
	"internal/testing/guild":         "",
	"internal/testing/guild/program": "internal/testing/guild",
	"internal/testing/long":          "",
	"internal/testing/model":         "",
	"internal/testing/pairs":         "",
	"internal/testing/script":        "inbox inbox/outcomes internal/disk internal/testing/babysitter internal/testing/long",
	"internal/testing/seat":          "internal/screen internal/testing/script",
	"internal/testing/walls":         "",
	"internal/testing/worlds":        "",
	"scripts/...":                    "",
	"scripts/picture":                "internal/screen", // it draws terminals

	"internal/testing/fleet/testdata/session": "inbox",
}
