package screen

type advice struct {
	matter     Matter
	cause, fix string
}

func (s Sight) advice() advice {
	switch s.Kind {
	case Login, APIKey:
		return s.authentication()
	case Untrusted:
		return advice{Setup, "the folder is not trusted: Claude Code asks whether to trust it, and no hook runs before",
			"start claude in this folder once, and answer the dialog yourself"}
	case Onboarding:
		return advice{Setup, "Claude Code was never set up for this user: it asks the questions of its first start, and no hook runs before",
			"start claude once as this user, with the same HOME, and answer its questions yourself"}
	case BadConfig:
		return advice{Setup, "Claude Code cannot read its own configuration, .claude.json",
			"repair .claude.json in this user's HOME (its backups folder in .claude may have a good one), or start claude once and have it reset"}
	case Offline:
		return advice{Setup, "Claude Code reached none of its services, which its first start needs",
			"see to the network and its proxy, then start claude once and answer its questions yourself"}
	case Dialog:
		return advice{Setup, "", "start claude in this folder once, with the same arguments, and answer the dialog yourself"}
	case SessionPicker, NoConversation:
		return s.resumption()
	case BypassWarning, BypassRefused:
		return s.bypass()
	case MCPServers, Imports, BadSettings:
		return s.project()
	case Permission, Question:
		return s.turn()
	}
	return advice{}
}

func (s Sight) authentication() advice {
	if s.Kind == APIKey {
		return advice{Authentication, "the API key in the environment is not approved: Claude Code asks whether to use it, and no hook runs before",
			"start claude in this folder once, with the same ANTHROPIC_API_KEY, and answer the dialog yourself"}
	}
	return advice{Authentication, "Claude Code is not logged in, or its key or login is not accepted",
		"start claude once as this user and log in with /login, or set ANTHROPIC_API_KEY to a key that is valid"}
}

func (s Sight) resumption() advice {
	if s.Kind == SessionPicker {
		return advice{Setup, "Claude Code asks which session to resume", "give --resume the session's id, or leave it out"}
	}
	return advice{Setup, "there is no conversation that Claude Code could go on with", "leave --continue or --resume out, or give the id of a session of this folder"}
}

func (s Sight) bypass() advice {
	if s.Kind == BypassRefused {
		return advice{Setup, "Claude Code refuses --dangerously-skip-permissions to root",
			"run it as another user, or allow the tools it needs in the permissions of the settings instead"}
	}
	return advice{Setup, "the risks of --dangerously-skip-permissions are not accepted: Claude Code asks whether to, and no hook runs before",
		"start claude with it once as this user and answer the dialog yourself, or leave it out"}
}

func (s Sight) project() advice {
	switch s.Kind {
	case MCPServers:
		return advice{Setup, "Claude Code asks whether to use the MCP servers of .mcp.json, and no hook runs before",
			"start claude in this folder once and choose yourself, or name them in enabledMcpjsonServers or disabledMcpjsonServers of its settings"}
	case Imports:
		return advice{Setup, "Claude Code asks whether CLAUDE.md may import files from outside the folder, and no hook runs before",
			"start claude in this folder once and answer the dialog yourself, or take the imports out"}
	}
	return advice{Setup, "a settings file is not valid: Claude Code asks what to do about it, and no hook runs before",
		"correct the file (start claude in this folder to see which one, and what is wrong in it)"}
}

// turn is about sessions that have begun.
func (s Sight) turn() advice {
	if s.Kind == Question {
		return advice{Setup, "the model asks a person a question, and waits for the answer",
			"have the prompt say that nobody is there to answer, or disallow the tool AskUserQuestion"}
	}
	return advice{Setup, "Claude Code asks for permission to use a tool, and waits for the answer",
		"allow the tool in the permissions of the settings, or choose another permission mode"}
}
