#!/usr/bin/env bash
# Shows a message on this user's desktop, by notify-send.
#
# Usage: --notify /opt/heartbeat/notify/desktop.sh
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
: "${DBUS_SESSION_BUS_ADDRESS:=unix:path=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/bus}"
export DBUS_SESSION_BUS_ADDRESS

case ${HEARTBEAT_WHAT-} in
    question | fault | failing | stalled) urgency=critical ;; # it stays until somebody closes it
    *) urgency=normal ;;
esac

# The body may have markup, which a text must not.
escaped() { printf %s "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }

exec notify-send --app-name=heartbeat --urgency="$urgency" -- \
    "heartbeat: ${HEARTBEAT_WHAT-} ${HEARTBEAT_ENTRY-}" "$(escaped "${HEARTBEAT_TEXT-}")"
