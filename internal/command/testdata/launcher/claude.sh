#!/bin/sh
# Stands in for claude: fires the Stop hook that its arguments name after each turn,
# until the hook approves. With CRASH set it dies in its second turn.
set -u
session=session-$$
active=false
reply=ready
while :; do
	decision=$(printf '{"hook_event_name":"Stop","session_id":"%s","prompt_id":"prompt-%s","stop_hook_active":%s,"last_assistant_message":"%s"}' \
		"$session" "$session" "$active" "$reply" | "$@") || exit 9
	[ -n "$decision" ] || exit 0
	case $decision in
	'{"decision":"block","reason":"'*'"}') ;;
	*) exit 8 ;;
	esac
	text=${decision#*'"reason":"'}
	text=${text%'"}'}
	[ -z "${CRASH:-}" ] || exit 1
	printf 'turn: %b\n' "$text"
	active=true
	reply="did it in turn $((turn = ${turn:-0} + 1))"
done
