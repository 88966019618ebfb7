package cli

// VerbNames are the verbs of heartbeat, in the order of its help. The hook knows only
// their names and links none of their code.
var VerbNames = []string{
	"send", "results", "status", "costs", "peek", "log", "metrics", "notify",
	"pause", "resume", "cancel",
	"recover", "dead-letter", "compact", "fsck",
	"run", "orchestrate", "result", "breakpoint",
	"init", "install", "uninstall", "doctor",
	"demo", "completion", "version", "man", "help",
}
