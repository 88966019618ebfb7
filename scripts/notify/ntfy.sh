#!/usr/bin/env bash
# Tells a person by ntfy (https://ntfy.sh, or a server of your own), on a phone for example.
#
# Usage: --notify '/opt/heartbeat/notify/ntfy.sh https://ntfy.example.com/my-topic'
#
# NTFY_TOKEN_FILE names a file with an access token, which is not shown in the list of
# processes. Anybody who knows a topic of ntfy.sh can read it.
set -euo pipefail
export LC_ALL=C

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac

case ${HEARTBEAT_WHAT-} in
    question | fault | failing | stalled) priority=high ;;
    drained | test) priority=low ;;
    *) priority=default ;;
esac
title=$(printf %s "heartbeat: ${HEARTBEAT_WHAT-} ${HEARTBEAT_ENTRY-}" | tr -cd ' -~' | cut -c 1-100)
headers=("Title: $title" "Priority: $priority" "Tags: robot")
[ -z "${NTFY_TOKEN_FILE-}" ] || headers+=("Authorization: Bearer $(<"$NTFY_TOKEN_FILE")")

printf '%s\n\n%s\n' "${HEARTBEAT_TEXT-}" "${HEARTBEAT_TYPE_THIS-}" |
    curl --fail --silent --show-error --max-time 20 --output /dev/null \
        --header @<(printf '%s\n' "${headers[@]}") --data-binary @- -- "$1"
