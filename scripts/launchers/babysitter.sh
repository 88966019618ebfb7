#!/usr/bin/env bash
# Makes a babysitter run, or resumes one, and has sessions of Claude Code work on it until
# it is done.
#
# Usage: babysitter.sh run --inbox PATH --entry FILE[#EXPORT] --process-id ID [START-FLAG...] -- [LAUNCH-FLAG...] claude PROMPT
#        babysitter.sh resume RUN --inbox PATH [RESUME-FLAG...] -- [LAUNCH-FLAG...] claude PROMPT
#
# run makes a run. START-FLAGs are those of `heartbeat run start`, such as --inputs FILE,
# --run-id ID and --breakpoints reject.
#
# resume continues a run after a crash, once a person has answered its question, or when its
# sleep is over. RUN is the id of a run of this inbox, or the path of its directory. The run
# is driven as before, except for what the RESUME-FLAGs say, those of `heartbeat run
# resume`; --babysitter, --breakpoints and --execute have to be given again.
#
# Everything behind -- goes to heartbeat-launch:
#
#   babysitter.sh run --inbox work/inbox.jsonl --entry process.mjs --process-id greet --run-id r1 -- --timeout 2h claude "Read CLAUDE.md"
#   babysitter.sh resume r1 --inbox work/inbox.jsonl -- --timeout 2h claude "Read CLAUDE.md"
#
# Exit status: 1 no run was made, or there is none to resume; otherwise that of
# heartbeat-launch: 0 the run is done, 75 it is not, since it waits for a person or its time,
# or cannot continue by itself.
set -euo pipefail

for word in "${1-}" "${2-}"; do
	case $word in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
done
case ${1-} in
run) verb=start ;;
resume) verb=resume ;;
*) echo 'babysitter: begin with run or resume (see --help)' >&2; exit 1 ;;
esac
name="babysitter $1"
shift

run_flags=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	run_flags+=("$1")
	shift
done
[ $# -gt 1 ] || { echo "$name: say behind -- what heartbeat-launch is to run (see --help)" >&2; exit 1; }
shift
status=0
launch_flags=$(heartbeat run "$verb" --launch-flags ${run_flags[@]+"${run_flags[@]}"}) || status=$?
case $status in 0 | 3) ;; *) exit "$status" ;; esac # with 3, the launcher says why the run cannot continue
eval "launch_flags=($launch_flags)"                 # they come quoted for the shell
exec heartbeat-launch "${launch_flags[@]}" "$@" </dev/null
