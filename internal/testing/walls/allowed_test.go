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
	"internal/platform":      "",
	"internal/release":       "",
	"internal/words":         "",
	"internal/flat":          "",
	"internal/price":         "internal/flat",
	"internal/meter":         "internal/disk internal/flat internal/price",
	"internal/charging":      "inbox internal/agent internal/host internal/meter",
	"internal/statusline":    "internal/meter internal/host internal/release",
	"internal/budget":        "internal/flat internal/price internal/words",
	"internal/disk":          "internal/platform",
	"internal/host":          "internal/platform",
	"internal/host/signals":  "",
	"internal/host/rights":   "internal/disk",
	"internal/host/guardian": "internal/host",
	"internal/stack":         "",
	"internal/exposition":    "",

	// The queue.
	"internal/lines":   "",
	"internal/journal": "internal/disk internal/flat internal/host internal/lines",
	"inbox":            "internal/budget internal/journal internal/price internal/lines internal/disk internal/flat internal/host internal/host/rights internal/words",

	// What is known of one client.
	"internal/agent/handed":    "",
	"internal/claude":          "internal/agent/handed internal/flat internal/platform",
	"internal/claude/limit":    "",
	"internal/codex":           "internal/agent/handed internal/disk internal/flat internal/host internal/lines",
	"internal/agent":           "internal/agent/handed internal/claude internal/codex internal/flat",
	"internal/screen":          "",
	"internal/claude/screen":   "internal/screen",
	"internal/codex/screen":    "internal/screen",
	"internal/codex/server":    "internal/words",
	"internal/codex/config":    "internal/claude/settings",
	"internal/claude/settings": "internal/disk",

	// What becomes of an entry whose answer is in doubt.
	"recover": "inbox internal/budget internal/charging internal/price orchestrate/effect internal/claude internal/claude/limit internal/disk internal/flat internal/host internal/words internal/agent",

	// Orchestration.
	"orchestrate": "inbox recover internal/disk internal/words orchestrate/babysitter orchestrate/command" +
		" orchestrate/effect orchestrate/prompt orchestrate/run orchestrate/schema orchestrate/session",
	"orchestrate/babysitter":            "internal/disk internal/host internal/host/guardian orchestrate/babysitter/invocation",
	"orchestrate/babysitter/invocation": "",
	"orchestrate/command":               "internal/platform",
	"orchestrate/effect":                "inbox", // a hook with no run to drive links this and nothing else of orchestrate
	"orchestrate/prompt":                "internal/words",
	"orchestrate/run":                   "internal/disk internal/flat",
	"orchestrate/schema":                "",
	"orchestrate/session":               "internal/disk",

	// What the commands are made of.
	"internal/cli":              "inbox internal/budget internal/price recover internal/host/rights internal/words orchestrate/effect orchestrate/babysitter/invocation internal/release",
	"internal/cli/colour":       "internal/words",
	"internal/cli/given":        "",
	"internal/cli/layout":       "internal/cli/colour internal/words",
	"internal/cli/progress":     "internal/cli/colour internal/cli/layout internal/words",
	"internal/claim":            "inbox recover internal/disk internal/host internal/host/rights internal/words",
	"internal/why":              "inbox internal/host internal/words recover",
	"internal/survey":           "inbox internal/disk internal/host internal/why internal/words orchestrate orchestrate/run recover",
	"internal/notify":           "inbox internal/disk internal/lines internal/survey internal/why internal/words recover internal/host",
	"internal/bridges":          "inbox internal/cli orchestrate orchestrate/babysitter orchestrate/effect orchestrate/prompt orchestrate/run",
	"internal/orphans":          "internal/charging inbox internal/cli recover",
	"internal/gate":             "",
	"testdata/embedding":        "inbox",
	"internal/mcp":              "inbox internal/cli/... internal/disk internal/gate internal/host/signals internal/mcp/page internal/task internal/words",
	"internal/mcp/page":         "internal/cli",
	"internal/task":             "inbox internal/cli internal/words orchestrate recover",
	"internal/hook":             "internal/agent internal/agent/handed internal/budget internal/price internal/charging internal/meter internal/orphans inbox recover internal/claude internal/cli internal/disk internal/flat internal/host internal/words orchestrate/effect", // what each turn starts
	"internal/hook/runs":        "internal/hook internal/bridges inbox internal/claude internal/cli internal/words orchestrate orchestrate/run orchestrate/session",
	"internal/command/...":      "internal/lines internal/exposition internal/fleet/page internal/mcp/page internal/charging internal/budget internal/hook internal/hook/runs internal/launch internal/notify internal/survey internal/why internal/bridges internal/orphans inbox recover internal/claude/... internal/codex/config internal/codex/server internal/cli/... internal/disk internal/flat internal/price internal/host/... internal/words internal/command/... internal/hosting/folder internal/hosting/verbs internal/watching/page orchestrate/... internal/testing/agent",
	"internal/launch/...":       "internal/mcp/page internal/charging internal/meter internal/bridges internal/claim internal/notify inbox recover internal/claude/... internal/codex/screen internal/codex/server internal/screen internal/cli/... internal/disk internal/flat internal/price internal/host/... internal/words internal/launch/... orchestrate/... internal/budget",
	"internal/launch/pump":      "",
	"internal/launch/recording": "internal/disk internal/launch/pump internal/words",
	"internal/launch/terminal":  "internal/host/... internal/launch/pump",

	// The session host. The hook links nothing of it.
	"internal/hosting/config": "internal/cli internal/disk internal/flat internal/hosting/folder internal/words internal/budget",
	"internal/hosting/folder": "internal/disk internal/flat internal/host",
	"internal/hosting/proxy":  "internal/gate internal/words",
	"internal/hosting":        "inbox recover internal/claude/settings internal/cli/... internal/disk internal/host internal/host/guardian internal/host/rights internal/host/signals internal/hosting/... internal/notify internal/price internal/words",
	"internal/hosting/queue":  "internal/charging internal/meter inbox internal/claim internal/claude internal/claude/settings internal/cli internal/disk internal/host internal/words orchestrate/effect recover internal/budget internal/agent",
	"internal/hosting/attach": "inbox internal/disk",
	"internal/hosting/verbs":  "internal/cli internal/cli/colour internal/budget",
	// The session host.
	"internal/hosting/process":    "internal/host internal/host/guardian",
	"internal/hosting/session":    "inbox internal/why internal/claim internal/claude internal/claude/settings internal/cli internal/disk internal/host internal/host/guardian internal/host/signals internal/hosting/attach internal/hosting/config internal/hosting/deadletter internal/hosting/folder internal/hosting/guild internal/hosting/process internal/hosting/proxy internal/hosting/queue internal/hosting/stream internal/hosting/transcript internal/notify internal/price internal/words recover internal/launch/managed internal/launch/terminal internal/budget internal/agent",
	"internal/hosting/guild":      "",
	"internal/hosting/deadletter": "internal/disk internal/hosting/folder internal/hosting/guild",

	// The live view. It links the terminal library, and only its own command links it.
	"internal/watching":        "inbox internal/cli internal/cli/colour internal/cli/layout internal/host/signals internal/notify internal/price internal/watching/... internal/why internal/words",
	"internal/watching/act":    "internal/cli",
	"internal/watching/board":  "internal/price internal/watching/look internal/words",
	"internal/watching/draw":   "internal/cli/colour internal/cli/layout internal/price internal/watching/board internal/watching/look internal/why internal/words",
	"internal/watching/finder": "inbox internal/disk internal/words",
	"internal/watching/look":   "inbox internal/charging internal/command/history internal/disk internal/host internal/price internal/survey internal/watching/finder internal/why orchestrate recover",
	"internal/watching/page":   "internal/cli internal/cli/colour",

	// The fleet. Nothing else links NATS.
	"internal/fleet/names":       "",
	"internal/fleet/link":        "internal/disk internal/fleet/link/target internal/host internal/words",
	"internal/fleet/link/target": "internal/disk",
	"internal/fleet/serving":     "",
	"internal/fleet/page":        "internal/budget internal/cli internal/cli/colour internal/fleet/link/target internal/fleet/names recover",
	"internal/fleet/message":     "inbox internal/fleet/names",
	"internal/fleet/claims":      "internal/disk internal/host",
	"internal/fleet/presence":    "",
	"internal/fleet/settle":      "inbox internal/fleet/names internal/price internal/words",
	"internal/fleet/layout":      "internal/fleet/names internal/words",
	"internal/fleet/agent":       "inbox internal/charging internal/claim internal/cli internal/fleet/claims internal/fleet/message internal/fleet/names internal/fleet/presence internal/fleet/settle internal/host internal/notify internal/survey internal/why internal/words recover",
	"internal/fleet/verbs":       "inbox internal/cli internal/cli/... internal/disk internal/exposition internal/fleet/... internal/host/signals internal/words",

	// The commands.
	"cmd/heartbeat-watch":      "internal/watching",
	"cmd/heartbeat-host":       "internal/hosting",
	"cmd/heartbeat-mcp":        "internal/mcp",
	"cmd/heartbeat-nats":       "internal/fleet/verbs",
	"cmd/heartbeat-nats-embed": "internal/fleet/link internal/fleet/serving internal/fleet/verbs",
	"cmd/heartbeat":            "internal/command internal/cli",
	"cmd/heartbeat-stop":       "internal/hook internal/stack",
	"cmd/heartbeat-launch":     "internal/launch",
	"cmd/heartbeat-meter":      "internal/statusline internal/stack",

	// The session host.
	"internal/hosting/stream":     "internal/claude/limit internal/flat",
	"internal/hosting/transcript": "internal/disk internal/flat internal/hosting/stream",

	// Rigs, which nothing that is shipped imports (but for the demo's agent).
	"internal/bench/...":             "inbox internal/screen internal/fleet/layout internal/fleet/names internal/hosting/stream internal/hosting/transcript internal/testing/agent internal/testing/days internal/testing/fleet",
	"internal/testing/agent":         "internal/host",
	"internal/testing/babysitter":    "",
	"internal/testing/build":         "",
	"internal/testing/client":        "internal/testing/model",
	"internal/testing/crash":         "internal/disk",
	"internal/testing/days":          "internal/testing/agent",
	"internal/testing/faults":        "",
	"internal/testing/fleet":         "",
	"internal/testing/guild":         "",
	"internal/testing/guild/program": "internal/testing/guild",
	"internal/testing/long":          "",
	"internal/testing/model":         "",
	"internal/testing/pages":         "internal/cli",
	"internal/testing/pairs":         "",
	"internal/testing/script":        "inbox internal/disk internal/testing/babysitter",
	"internal/testing/walls":         "",
	"internal/testing/worlds":        "",
	"scripts/...":                    "",
	"scripts/picture":                "internal/screen", // it draws terminals
}
