// Package config edits Codex's config.toml: whether hooks run, and the tools of an agent.
//
// The file is the user's: an edit inserts or deletes heartbeat's own bytes, and everything else stays as it is. What
// install writes is this, or less of it:
//
//	[features] # heartbeat install
//	hooks = true # heartbeat install
//
//	[mcp_servers.heartbeat]
//	command = "/opt/heartbeat/heartbeat-mcp"
//	args = ["--inbox", "/srv/inbox.jsonl", "--role", "agent"]
//	default_tools_approval_mode = "approve"
//
// Nothing is stored outside the file. Where hooks were switched off in it, the line above says so:
//
//	[features]
//	# heartbeat install: features.hooks was false
//	hooks = true
//
// An edit and what takes it back restore every byte; edits elsewhere in between stay. A second edit changes nothing. After
// an error nothing was changed. An empty file counts as none, and nil is returned where nothing is left.
package config
