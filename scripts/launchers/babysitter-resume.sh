#!/usr/bin/env bash
# Goes on with a babysitter run until it is done: after a crash, once a person has
# answered what it asked, or when it has slept out.
#
# Usage: babysitter-resume.sh RUN --inbox PATH [RESUME-FLAG...] -- [LAUNCH-FLAG...] claude PROMPT
#
# RUN is the id of a run of this inbox, or the path of its directory. It is driven as it
# was before, but for what the RESUME-FLAGs, those of `heartbeat run resume`, say, and
# for --babysitter, --breakpoints and --execute, which have to be said again.
# What stands behind -- goes to heartbeat-launch, as in
#
#   babysitter-resume.sh r1 --inbox work/inbox.jsonl -- --timeout 2h claude "Read CLAUDE.md"
#
# Exit status: 1 there is no such run, or it is completed; otherwise that of heartbeat-launch:
# 0 the run is done, 75 it is not, as with babysitter-run.sh.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

of_run=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	of_run+=("$1")
	shift
done
[ $# -gt 1 ] || { echo 'babysitter-resume: say behind -- what heartbeat-launch is to run (see --help)' >&2; exit 1; }
shift
status=0
flags=$(heartbeat run resume --launch-flags ${of_run[@]+"${of_run[@]}"}) || status=$?
case $status in 0 | 3) ;; *) exit "$status" ;; esac # 3: the launcher says why it goes no further
eval "flags=($flags)" # they are quoted for this
exec heartbeat-launch "${flags[@]}" "$@" </dev/null
