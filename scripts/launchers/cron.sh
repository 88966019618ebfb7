#!/usr/bin/env bash
# Works through an inbox from cron, and prints only what somebody must look at, since cron
# mails what is printed. Runs never overlap: an inbox has one launcher at a time.
#
# Usage: cron.sh --inbox PATH [LAUNCH-FLAG...] -- claude "Read CLAUDE.md"
#
# A crontab (crontab -e) must say where the commands are, with absolute paths: cron expands
# no variables there. It also reads % as the end of a line.
#
#   PATH=/home/me/go/bin:/home/me/.local/bin:/usr/local/bin:/usr/bin:/bin
#   MAILTO=me@example.com
#   */10 * * * * /opt/heartbeat/cron.sh --inbox /srv/agent/work/inbox.jsonl --cwd /srv/agent/project -- claude "Read CLAUDE.md"
#
# Claude Code finds its login by HOME, which cron sets. To record what goes well, too, add
# --log FILE.
#
# Exit status: that of heartbeat-launch. It prints nothing for 0 (nothing waited, or
# everything was answered) and for 75 (work is left for a later run, or another launcher
# has it), unless one session after another failed, a run is stuck, or the machine is short of
# something. Status 78 (somebody has to do something, such as log in) is reported once a day
# while nothing changes, and so is a command of --on-result that takes nothing for ten minutes;
# where the inbox's folder is missing, each run reports it.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

command -v heartbeat-launch >/dev/null || { echo 'cron: heartbeat-launch is not on the PATH'; exit 78; }

# exec, so that a signal to this process reaches the launcher.
exec heartbeat-launch --output mail "$@" </dev/null 2>&1
