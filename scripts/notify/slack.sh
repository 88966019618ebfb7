#!/usr/bin/env bash
# Posts a message to Slack, or to a chat that takes the same JSON (Mattermost, Rocket.Chat,
# Discord with /slack behind its address).
#
# Usage: --notify '/opt/heartbeat/notify/slack.sh /etc/heartbeat/slack'
#
# The argument is a file with the address of an incoming webhook, which is a secret.
set -euo pipefail

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
url=$(head -n 1 -- "$1")

# Text as Slack takes it in JSON: without its markup, so that it mentions nobody, and
# without what would end the string. Control characters and line breaks are gone before.
quoted() { printf %s "$1" | tr -d '\000-\037' | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/`/'"'"'/g; s/\\/\\\\/g; s/"/\\"/g'; }

# shellcheck disable=SC2016 # the backticks are Slack's
printf '{"text":"*%s* %s\\n`%s`"}\n' \
    "$(quoted "${HEARTBEAT_WHAT-}")" "$(quoted "${HEARTBEAT_TEXT-}")" "$(quoted "${HEARTBEAT_TYPE_THIS-}")" |
    curl --fail --silent --show-error --max-time 20 --output /dev/null \
        --header 'Content-Type: application/json' --data-binary @- --config <(printf 'url = "%s"\n' "$url")
