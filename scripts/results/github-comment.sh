#!/usr/bin/env bash
# Comments on a pull request or an issue of GitHub with what came of an entry.
#
# Usage: --exec '/opt/heartbeat/results/github-comment.sh OWNER/REPO /etc/heartbeat/github-token'
#
# The entry says which one, as in heartbeat send --meta pr=17, or issue=17; of another entry
# nobody is told. The repository is never the entry's to name. The second argument is a file
# with a token that may write comments. The same key again edits the comment that it made.
# GITHUB_API_URL names another server.
set -euo pipefail

case ${2-} in '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac
here=$(dirname -- "$0")
token=$(head -n 1 -- "$2")
repo=${GITHUB_API_URL:-https://api.github.com}/repos/$1
number=${HEARTBEAT_META_pr-${HEARTBEAT_META_issue-}}
mark="<!-- heartbeat $HEARTBEAT_KEY -->"

# A number that cannot be one is the sender's mistake: it must not keep back what comes after.
if ! [[ $number =~ ^[1-9][0-9]{0,9}$ ]]; then
    cat >/dev/null
    [ -z "$number" ] || echo "pr or issue of $HEARTBEAT_ENTRY_ID is no number" >&2
    exit 0
fi

# The answer, and on its last line the status. The token is in no list of processes.
call() {
    curl --silent --show-error --max-time 60 --write-out '\n%{http_code}' --request "$1" "${@:3}" \
        --header @<(printf '%s\n' "Authorization: Bearer $token" 'Accept: application/vnd.github+json' 'Content-Type: application/json') -- "$2"
}
status() { tail -n 1 <<<"$1"; }
refused() {
    echo "GitHub answered $(status "$1") $(head -n -1 <<<"$1" | jq -r '.message? // empty' 2>/dev/null | head -c 200)" >&2
    exit 1
}

# Nothing in the text mentions anybody, or passes for a mark.
# shellcheck disable=SC2016 # the variables are those of jq
body=$(jq -r --argjson most 60000 -f "$here/text.jq" |
    jq -Rs --arg mark "$mark" '{body: ((rtrimstr("\n") | split("@") | join("@\u200b") | split("<!--") | join("<!\u200b--") | .[:62000]) + "\n\n" + $mark)}')

comment=
for ((page = 1; page <= 50; page++)); do
    answer=$(call GET "$repo/issues/$number/comments?per_page=100&page=$page")
    case $(status "$answer") in
        200) ;;
        404 | 410)
            # Is it this one that is not there, or does the token not reach the repository?
            whole=$(call GET "$repo")
            [ "$(status "$whole")" = 200 ] || refused "$whole"
            echo "there is no pull request or issue $number: nobody is told" >&2
            exit 0
            ;;
        *) refused "$answer" ;;
    esac
    list=$(head -n -1 <<<"$answer")
    # shellcheck disable=SC2016
    comment=$(jq -r --arg mark "$mark" 'first(.[] | select(.body | strings | endswith($mark)) | .id) // empty' <<<"$list")
    if [ -n "$comment" ] || [ "$(jq length <<<"$list")" -lt 100 ]; then
        break
    fi
done

if [ -n "$comment" ]; then
    answer=$(call PATCH "$repo/issues/comments/$comment" --data-binary @- <<<"$body")
else
    answer=$(call POST "$repo/issues/$number/comments" --data-binary @- <<<"$body")
fi
[[ $(status "$answer") == 2* ]] || refused "$answer"
