#!/usr/bin/env bash
# The steps of the action in one job of GitLab. Its cache and its artifacts can only be below
# the checkout: the inbox is brought out of there before the work, since state that came with
# a repository is not believed, and back after it.
#
# ASK_KEEP: the folder of the cache and the artifacts, in the checkout
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
steps=$(cd "$(dirname "$0")" && pwd -P)
keep=${ASK_KEEP:-.heartbeat}
# Jobs may share a machine, and strangers its folder for temporary files.
ASK_ROOT=$(mktemp -d "${TMPDIR:-/tmp}/heartbeat.XXXXXX")
export ASK_ROOT ASK_SHA
trap 'rm -rf "$ASK_ROOT"' EXIT
# The agent is not to have it.
token=${ASK_TOKEN:-${HEARTBEAT_TOKEN:-}}
unset ASK_TOKEN HEARTBEAT_TOKEN

# The runner made the checkout, perhaps as another user than this job's.
tracked=$(git -c core.fsmonitor=false -c safe.directory='*' ls-files -- "$keep") || [ ! -e .git ] ||
	fail 78 "git does not say whether the repository has a folder $keep of its own (see above)"
[ -z "$tracked" ] ||
	fail 1 "the repository has a folder $keep of its own, and a cache would not be told from it: take it out of the repository"
no_link() { [ ! -L "$keep" ] || fail 1 "$keep is a link: remove it, the cache is kept in a folder of that name"; }
no_link

ASK_TOKEN=$token "$steps/prepare.sh"
ASK_DIR=$(cat "$ASK_ROOT/newest")
ASK_TRUSTED=$(cd "${ASK_FOLDER:-.}" && pwd -P)
export ASK_DIR ASK_TRUSTED
name=$(basename "$ASK_DIR")
"$steps/install.sh"
export PATH=$ASK_ROOT/bin:$PATH
"$steps/client.sh"
for of in "$ASK_ROOT"/claude/node_modules/@anthropic-ai/claude-code-*; do PATH=$PATH:$of; done

if [ -d "$keep/$name" ] && [ ! -s "$ASK_DIR/inbox/inbox.jsonl" ]; then cp -R "$keep/$name/." "$ASK_DIR/inbox/"; fi
status=0
trap 'kill -TERM "$pid" 2>/dev/null || true' INT TERM HUP
"$steps/ask.sh" &
pid=$!
wait "$pid" || status=$?
while kill -0 "$pid" 2>/dev/null; do
	status=0
	wait "$pid" || status=$?
done
trap - INT TERM HUP

no_link # the agent works beside it
rm -rf "${keep:?}/$name"
mkdir -p "$keep/$name"
cp -R "$ASK_DIR/inbox/." "$keep/$name/"
for file in reply.md outcome.env; do
	if [ -e "$ASK_DIR/$file" ]; then cp "$ASK_DIR/$file" "$keep/$file"; else rm -f "$keep/$file"; fi
done
if [ -s "$ASK_DIR/target" ] && ! grep -qx HEARTBEAT_OUTCOME=refused "$keep/outcome.env"; then
	posted=0
	ASK_TOKEN=$token "$steps/comment.sh" || posted=$?
	[ "$status" -ne 0 ] || status=$posted
fi
exit "$status"
