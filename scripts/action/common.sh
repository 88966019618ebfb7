# shellcheck shell=bash
# What the steps of the action share. A step sources it.
#
# ASK_ROOT is the folder of all, ASK_SHA the commit. ASK_DIR is the folder of this prompt:
# prompt.md, id, target (which pull request), inbox/ (the one thing that is kept from job
# to job), outcome.json, reply.json and reply.md (the same), report.json.
set -euo pipefail
umask 077
: "${ASK_ROOT:=${RUNNER_TEMP:-${TMPDIR:-/tmp}}/heartbeat}" "${ASK_SHA:=${GITHUB_SHA:-${CI_COMMIT_SHA:-}}}"
[ -z "${ASK_KEY:-}" ] || export ANTHROPIC_API_KEY=$ASK_KEY
unset ASK_KEY

# fail STATUS SENTENCE: ends the step. GitHub shows the sentence on the run's page, too.
fail() {
	if [ "${GITHUB_ACTIONS:-}" = true ]; then
		local text=${2//'%'/%25}
		text=${text//$'\r'/%0D}
		printf '::error title=heartbeat::%s\n' "${text//$'\n'/%0A}" >&2
	else
		printf 'heartbeat: %s\n' "$2" >&2
	fi
	exit "$1"
}

needs() { # PROGRAM
	command -v "$1" >/dev/null || fail 78 "$1 is not on the PATH of this runner: install it in a step before"
}

random() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

sum() { # of stdin
	if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1
}

# output NAME: sets an output of the step to stdin. Nothing in the text can end it, since
# nobody knows the delimiter before.
output() {
	[ -n "${GITHUB_OUTPUT:-}" ] || { cat >/dev/null; return 0; }
	local end
	end=end-$(random)
	{ printf '%s<<%s\n' "$1" "$end"; cat; printf '\n%s\n' "$end"; } >>"$GITHUB_OUTPUT"
}

# A log reads commands in what is printed. Between these two it reads none; all that is
# printed there has to go to stdout, since nobody orders the two streams.
stop_commands() {
	resume=$(random)
	[ "${GITHUB_ACTIONS:-}" != true ] || printf '::stop-commands::%s\n' "$resume"
}
resume_commands() { [ "${GITHUB_ACTIONS:-}" != true ] || printf '\n::%s::\n' "$resume"; }


# fact FILTER: of the outcome, empty where it says nothing.
fact() { jq -r "($1) // empty" <"$ASK_DIR/outcome.json" 2>/dev/null || true; }

# cost prints dollars as a decimal number, for which jq has another spelling; nothing where no
# price is known.
cost() {
	local usd
	usd=$(fact '.result // .dead_letter | .cost_usd | numbers')
	[ -z "$usd" ] || LC_ALL=C printf '%.6f' "$usd"
}
