#!/usr/bin/env bash
# Mails what came of an entry, by way of the system's sendmail.
#
# Usage: --exec '/opt/heartbeat/results/mail.sh me@example.com'
#
# The same key again has the same Message-ID, which mail programs show once. SENDMAIL names
# another sendmail than the one on PATH or in /usr/sbin. That of Postfix or Exim needs rights that
# the units of an agent take away (NoNewPrivileges=, ProtectSystem=), and so from --on-result: hand
# over by heartbeat results --follow --exec in a service without these.
set -euo pipefail
export LC_ALL=C

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
to=$1
here=$(dirname -- "$0")
sendmail=${SENDMAIL:-$(PATH=$PATH:/usr/sbin:/usr/lib command -v sendmail)}
text=$(jq -r --argjson most 1000000 -f "$here/text.jq")

# A header is one line of printable ASCII: nothing in a text can begin another header.
header() { printf '%s: %s\n' "$1" "$(printf %s "$2" | tr '\n\r\t' '   ' | tr -cd ' -~' | cut -c 1-200)"; }

{
    header To "$to"
    header Subject "heartbeat: ${HEARTBEAT_KIND//_/ } ${HEARTBEAT_ID:-$HEARTBEAT_ENTRY_ID}"
    header Message-ID "<$HEARTBEAT_KEY@heartbeat.invalid>"
    header Auto-Submitted auto-generated
    header Content-Type 'text/plain; charset=utf-8'
    header Content-Transfer-Encoding 8bit
    printf '\n%s\n' "$text"
} | "$sendmail" -i -- "$to"
