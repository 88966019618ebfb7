#!/usr/bin/env bash
# Posts the object itself, as JSON, with a signature.
#
# Usage: --exec '/opt/heartbeat/results/webhook.sh /etc/heartbeat/webhook'
#
# The argument is a file with the address on its first line and a secret on its second. The
# receiver computes HMAC-SHA256 with the secret over X-Heartbeat-Timestamp, a dot and the body,
# compares it with X-Heartbeat-Signature, and does nothing twice for one X-Heartbeat-Key.
set -euo pipefail
export LC_ALL=C

case ${1-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
url=$(sed -n 1p -- "$1")
secret=$(sed -n 2p -- "$1")
[ -n "$secret" ] || { echo "$1 has no secret on its second line" >&2; exit 1; }
body=$(cat)
now=$(date +%s)

sum() { openssl dgst -sha256 -r | cut -c 1-64; }

# By hand, since openssl takes a key from its arguments alone, which others can list.
hmac() {
    local hex inner outer='' i x
    hex=$(printf %s "$secret" | od -An -vtx1 | tr -d ' \n')
    [ "${#hex}" -le 128 ] || hex=$(printf %s "$secret" | sum)
    inner=''
    for ((i = 0; i < 128; i += 2)); do
        x=${hex:i:2}
        printf -v inner '%s\\x%02x' "$inner" $((16#${x:-0} ^ 16#36))
        printf -v outer '%s\\x%02x' "$outer" $((16#${x:-0} ^ 16#5c))
    done
    inner=$({ printf '%b' "$inner"; cat; } | sum)
    printf '%b%b' "$outer" "$(fold -w 2 <<<"$inner" | sed 's/^/\\x/' | tr -d '\n')" | sum
}

signature=$(printf '%s.%s' "$now" "$body" | hmac)
printf %s "$body" |
    curl --fail --silent --show-error --max-time 60 --output /dev/null \
        --header @<(printf '%s\n' 'Content-Type: application/json' "X-Heartbeat-Key: $HEARTBEAT_KEY" \
            "X-Heartbeat-Timestamp: $now" "X-Heartbeat-Signature: sha256=$signature") \
        --data-binary @- --config <(printf 'url = "%s"\n' "$url")
