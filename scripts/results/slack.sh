#!/usr/bin/env bash
# Posts what came of an entry to Slack, or to a chat that takes the same JSON (Mattermost,
# Rocket.Chat, Discord with /slack behind its address).
#
# Usage: --exec '/opt/heartbeat/results/slack.sh /etc/heartbeat/slack'
#
# The argument is a file with the address of an incoming webhook, which is a secret.
set -euo pipefail

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
here=$(dirname -- "$0")
url=$(head -n 1 -- "$1")

# Without Slack's markup of links and mentions, so that the text mentions nobody.
# shellcheck disable=SC2016 # the variables are those of jq
jq -r --argjson most 3000 -f "$here/text.jq" |
    jq -Rs --arg of "${HEARTBEAT_KIND//_/ } ${HEARTBEAT_ID:-$HEARTBEAT_ENTRY_ID}" \
        '{text: ("\($of)\n\(.)" | split("&") | join("&amp;") | split("<") | join("&lt;") | split(">") | join("&gt;"))}' |
    curl --fail --silent --show-error --max-time 20 --output /dev/null \
        --header 'Content-Type: application/json' --data-binary @- --config <(printf 'url = "%s"\n' "$url")
