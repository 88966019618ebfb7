#!/usr/bin/env bash
# Makes a babysitter run, and has sessions of Claude Code work on it until it is done.
#
# Usage: babysitter-run.sh --inbox PATH --entry FILE[#EXPORT] --process-id ID [START-FLAG...] -- [LAUNCH-FLAG...] claude PROMPT
#
# START-FLAGs are those of `heartbeat run start`, such as --inputs FILE, --run-id ID
# and --breakpoints reject. What stands behind -- goes to heartbeat-launch, as in
#
#   babysitter-run.sh --inbox work/inbox.jsonl --entry process.mjs --process-id greet --run-id r1 -- --timeout 2h claude "Read CLAUDE.md"
#
# Should the work end before the run is done, babysitter-resume.sh goes on with it.
#
# Exit status: 1 no run was made; otherwise that of heartbeat-launch: 0 the run is done, 75
# it is not, since it waits for a person or its time, or goes no further by itself.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

of_run=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	of_run+=("$1")
	shift
done
[ $# -gt 1 ] || { echo 'babysitter-run: say behind -- what heartbeat-launch is to run (see --help)' >&2; exit 1; }
shift
status=0
flags=$(heartbeat run start --launch-flags ${of_run[@]+"${of_run[@]}"}) || status=$?
case $status in 0 | 3) ;; *) exit "$status" ;; esac # 3: the launcher says why it goes no further
eval "flags=($flags)" # they are quoted for this
exec heartbeat-launch "${flags[@]}" "$@" </dev/null
