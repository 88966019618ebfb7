package client

import (
	"heartbeat/internal/screen"
)

var claudeAdvice = map[screen.Kind]screen.Advice{
	screen.Untrusted: setup("the folder is not trusted: Claude Code asks whether to trust it, and no hook runs before",
		"start claude in this folder once, and answer the dialog yourself"),
	screen.Onboarding: setup("Claude Code was never set up for this user: it asks the questions of its first start, and no hook runs before",
		"start claude once as this user, with the same HOME, and answer its questions yourself"),
	screen.BadConfig: setup("Claude Code cannot read its own configuration, .claude.json",
		"repair .claude.json in this user's HOME (its backups folder in .claude may have a good one), or start claude once and have it reset"),
	screen.Offline: setup("Claude Code reached none of its services, which its first start needs",
		"see to the network and its proxy, then start claude once and answer its questions yourself"),
	screen.Dialog: setup("",
		"start claude in this folder once, with the same arguments, and answer the dialog yourself"),
	screen.APIKey: login("the API key in the environment is not approved: Claude Code asks whether to use it, and no hook runs before",
		"start claude in this folder once, with the same ANTHROPIC_API_KEY, and answer the dialog yourself"),
	screen.Login: login("Claude Code is not logged in, or its key or login is not accepted",
		"start claude once as this user and log in with /login, or set ANTHROPIC_API_KEY to a key that is valid"),
	screen.SessionPicker: setup("Claude Code asks which session to resume",
		"give --resume the session's id, or leave it out"),
	screen.NoConversation: setup("there is no conversation that Claude Code could go on with",
		"leave --continue or --resume out, or give the id of a session of this folder"),
	screen.BypassRefused: setup("Claude Code refuses --dangerously-skip-permissions to root",
		"run it as another user, or allow the tools it needs in the permissions of the settings instead"),
	screen.BypassWarning: setup("the risks of --dangerously-skip-permissions are not accepted: Claude Code asks whether to, and no hook runs before",
		"start claude with it once as this user and answer the dialog yourself, or leave it out"),
	screen.MCPServers: setup("Claude Code asks whether to use the MCP servers of .mcp.json, and no hook runs before",
		"start claude in this folder once and choose yourself, or name them in enabledMcpjsonServers or disabledMcpjsonServers of its settings"),
	screen.Imports: setup("Claude Code asks whether CLAUDE.md may import files from outside the folder, and no hook runs before",
		"start claude in this folder once and answer the dialog yourself, or take the imports out"),
	screen.BadSettings: setup("a settings file is not valid: Claude Code asks what to do about it, and no hook runs before",
		"correct the file (start claude in this folder to see which one, and what is wrong in it)"),
	screen.Question: setup("the model asks a person a question, and waits for the answer",
		"have the prompt say that nobody is there to answer, or disallow the tool AskUserQuestion"),
	screen.Permission: setup("Claude Code asks for permission to use a tool, and waits for the answer",
		"allow the tool in the permissions of the settings, or choose another permission mode"),
}

// setup is what a person has to put right before a session can start, and how.
func setup(cause, fix string) screen.Advice {
	return screen.Advice{Matter: screen.Setup, Cause: cause, Fix: fix}
}

// login is the same about who the client is for its service.
func login(cause, fix string) screen.Advice {
	return screen.Advice{Matter: screen.Authentication, Cause: cause, Fix: fix}
}
