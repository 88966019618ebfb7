#!/usr/bin/env bash
# Posts the report on the pull request of GitHub, or the merge request of GitLab. A comment
# that a job before has written for this prompt is edited instead: a mark in it, which nobody
# sees, says so, and it counts only if its author is ours.
#
# ASK_TOKEN: an input; GITHUB_API_URL, GITHUB_REPOSITORY, or CI_API_V4_URL, CI_PROJECT_ID
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
needs jq
needs curl
target=$(cat "$ASK_DIR/target")
[ -n "$target" ] || exit 0
[ -n "${ASK_TOKEN:-}" ] || fail 78 'comment: there is no token to write it with: set token, or leave comment out'
work=$(mktemp -d "$ASK_DIR/comment.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -n "${CI_API_V4_URL:-}" ] && [ -z "${GITHUB_API_URL:-}" ]; then
	header="PRIVATE-TOKEN: $ASK_TOKEN"
	base=$CI_API_V4_URL
	all=projects/$CI_PROJECT_ID/merge_requests/$target/notes
	one=$all
	edit=PUT
	rights='the token of this project needs the scope api and the role Reporter'
else
	header="Authorization: Bearer $ASK_TOKEN"
	base=$GITHUB_API_URL
	all=repos/$GITHUB_REPOSITORY/issues/$target/comments
	one=repos/$GITHUB_REPOSITORY/issues/comments
	edit=PATCH
	rights='give the job "permissions: { contents: read, pull-requests: write }"; for a pull request of a fork, the token only reads'
fi

# api METHOD PATH [FILE]: the answer is in $work/answer, and its status in $code. The token is
# on no command line, where every user of the machine could read it.
api() {
	code=$(printf 'header = "%s"\n' "$header" | curl --config - --silent --show-error --max-time 60 --max-filesize 50000000 \
		--request "$1" --header 'Content-Type: application/json' --header 'Accept: application/json' \
		${3:+--data-binary "@$3"} --output "$work/answer" --write-out '%{http_code}' "$base/$2") ||
		fail 75 "comment: $1 $base/$2: no answer (see above): run the job again, the reply is kept"
}

must() { # METHOD PATH [FILE]
	api "$@"
	case $code in
	2*) ;;
	401) fail 78 "comment: $base does not accept the token: set another one" ;;
	403 | 404) fail 78 "comment: $1 $2: status $code: $rights" ;;
	*) fail 75 "comment: $1 $2: status $code: run the job again, the reply is kept" ;;
	esac
}

# Who writes with this token. The token of a job may not ask: it is a bot, and no person can be one.
api GET user
me=
[ "$code" != 200 ] || me=$(jq -r '(.login // .username) // empty' "$work/answer")

mark="<!-- heartbeat $(sum <"$ASK_DIR/id") -->"
ours() { # prints the ids of our comments with the mark, the oldest first
	local page=1 path
	while [ "$page" -le 30 ]; do
		path="$all?per_page=100&page=$page"
		[ "$one" != "$all" ] || path="$path&sort=asc&order_by=created_at"
		must GET "$path"
		jq -r --arg mark "$mark" --arg me "$me" '.[] | select((.body // "") | startswith($mark))
			| (.user // .author // {}) as $by
			| select(if $me == "" then $by.type == "Bot" else ($by.login // $by.username) == $me end) | .id' "$work/answer"
		[ "$(jq length "$work/answer")" -eq 100 ] || break
		page=$((page + 1))
	done
}

jq --arg mark "$mark" '{body: ($mark + "\n" + .)}' <"$ASK_DIR/report.json" >"$work/body"
ours >"$work/ids"
first=$(head -n 1 "$work/ids")
if [ -z "$first" ]; then
	must POST "$all" "$work/body"
	mine=$(jq -r .id "$work/answer")
	# Two jobs may have looked at the same time: the older comment stays.
	ours >"$work/ids"
	first=$(head -n 1 "$work/ids")
	[ -n "$first" ] && [ "$first" != "$mine" ] || exit 0
	must DELETE "$one/$mine"
fi
must "$edit" "$one/$first" "$work/body"
