#!/usr/bin/env bash
# Tells a person that a systemd service has failed, by a command that is used for --notify.
# systemd/heartbeat-failed@.service calls it.
#
# Usage: unit-failed.sh UNIT COMMAND [ARGUMENT...]
#
# A heartbeat@NAME.service that its timer starts in vain, since a person has to do something
# (status 78), is told once a day, until it succeeds: STATE_DIRECTORY keeps what was told.
set -euo pipefail

case ${2-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
unit=$(printf %s "$1" | tr -cd 'A-Za-z0-9:_.@\\-')
shift
result=$(systemctl show --property=Result --value -- "$unit" 2>/dev/null | tr -cd 'a-z0-9-' || true)
told=
if [[ $unit == heartbeat@* && ${STATE_DIRECTORY-} && $(systemctl show --property=ExecMainStatus --value -- "$unit" 2>/dev/null) == 78 ]]; then
    told=$STATE_DIRECTORY/$unit # which the service removes
    [[ -z $(find "$told" -mmin -1440 2>/dev/null) ]] || exit 0
fi

export HEARTBEAT_WHAT=unit-failed HEARTBEAT_ENTRY="$unit" HEARTBEAT_INBOX="$unit"
export HEARTBEAT_TEXT="the service $unit has failed: ${result:-see its log}"
export HEARTBEAT_TYPE_THIS="systemctl status '$unit'"
json=${unit//\\/\\\\} # a unit's name may have backslashes, and no quotes
printf '{"v":1,"what":"unit-failed","host":"%s","at":"%s","unit":"%s","reason":"%s","text":"the service %s has failed: %s","type_this":"systemctl status '"'%s'"'"}\n' \
    "$(uname -n)" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$json" "$result" "$json" "${result:-see its log}" "$json" |
    "$@"
if [[ $told ]]; then touch -- "$told"; fi
