#!/usr/bin/env bash
# Installs Claude Code of a fixed version, unless there is one; and answers what it asks on a
# fresh machine: whether this folder is trusted, and this key is meant. The answers are in a
# folder of their own, which only the next step uses; a machine where somebody has logged in
# has its own.
#
# ASK_CLIENT_VERSION: an input; ASK_TRUSTED: the folder that the agent works in
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
needs jq

if ! command -v claude >/dev/null; then
	command -v npm >/dev/null || fail 78 'install: neither claude nor npm is on the PATH: install one in a step before (actions/setup-node)'
	[[ $ASK_CLIENT_VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail 1 "client-version: $ASK_CLIENT_VERSION is no version such as 2.1.329"
	case $(uname -m) in x86_64) arch=x64 ;; *) arch=arm64 ;; esac
	package=@anthropic-ai/claude-code-$(uname -s | tr '[:upper:]' '[:lower:]')-$arch
	# No script of a package runs here.
	npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$ASK_ROOT/claude" "$package@$ASK_CLIENT_VERSION" ||
		fail 75 "install: npm install $package@$ASK_CLIENT_VERSION failed: run the job again, or choose another client-version"
	[ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$ASK_ROOT/claude/node_modules/$package" >>"$GITHUB_PATH"
fi

if [ -n "${ANTHROPIC_API_KEY:-}${CLAUDE_CODE_OAUTH_TOKEN:-}" ] && [ -z "${CLAUDE_CONFIG_DIR:-}" ]; then
	mkdir -p "$ASK_DIR/client"
	jq -n --arg folder "$ASK_TRUSTED" '{
		hasCompletedOnboarding: true, theme: "dark",
		customApiKeyResponses: {approved: [env.ANTHROPIC_API_KEY // empty | .[-20:]], rejected: []},
		projects: {($folder): {hasTrustDialogAccepted: true}}
	}' >"$ASK_DIR/client/.claude.json"
fi
