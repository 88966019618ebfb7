#!/usr/bin/env bash
# Tells what came of an entry by ntfy (https://ntfy.sh, or a server of your own).
#
# Usage: --exec '/opt/heartbeat/results/ntfy.sh https://ntfy.example.com/my-topic'
#
# NTFY_TOKEN_FILE names a file with an access token, which is not shown in the list of
# processes. Anybody who knows a topic of ntfy.sh can read it.
set -euo pipefail
export LC_ALL=C

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
here=$(dirname -- "$0")
text=$(jq -r --argjson most 900 -f "$here/text.jq")

priority=default
[ "$HEARTBEAT_KIND" = result ] || priority=high
title=$(printf %s "heartbeat: ${HEARTBEAT_KIND//_/ } ${HEARTBEAT_ID:-$HEARTBEAT_ENTRY_ID}" | tr -cd ' -~' | cut -c 1-100)
headers=("Title: $title" "Priority: $priority" "Tags: robot")
[ -z "${NTFY_TOKEN_FILE-}" ] || headers+=("Authorization: Bearer $(head -n 1 -- "$NTFY_TOKEN_FILE")")

printf '%s\n' "$text" |
    curl --fail --silent --show-error --max-time 20 --output /dev/null \
        --header @<(printf '%s\n' "${headers[@]}") --data-binary @- -- "$1"
