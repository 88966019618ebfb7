#!/usr/bin/env bash
# Tells a person by mail, by way of the system's sendmail.
#
# Usage: --notify '/opt/heartbeat/notify/mail.sh me@example.com'
#
# SENDMAIL names another sendmail than the one on PATH or in /usr/sbin. That of Postfix or Exim
# needs rights and a spool that the units of an agent take away (NoNewPrivileges=,
# ProtectSystem=): for them start systemd/heartbeat-notify@.timer instead.
set -euo pipefail
export LC_ALL=C

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
to=$1
sendmail=${SENDMAIL:-$(PATH=$PATH:/usr/sbin:/usr/lib command -v sendmail)}

# A header is one line of printable ASCII: nothing in a text can begin another header.
header() { printf '%s: %s\n' "$1" "$(printf %s "$2" | tr '\n\r\t' '   ' | tr -cd ' -~' | cut -c 1-200)"; }

{
    header To "$to"
    header Subject "heartbeat: ${HEARTBEAT_WHAT-} ${HEARTBEAT_ENTRY-} in ${HEARTBEAT_INBOX-}"
    header Auto-Submitted auto-generated
    header Content-Type 'text/plain; charset=utf-8'
    header Content-Transfer-Encoding 8bit
    printf '\n%s\n\n%s\n\n' "${HEARTBEAT_TEXT-}" "${HEARTBEAT_TYPE_THIS-}"
    cat # the object, for programs that read mail
} | "$sendmail" -i -- "$to"
