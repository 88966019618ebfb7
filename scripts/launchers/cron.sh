#!/usr/bin/env bash
# Works through an inbox from cron, and prints, which is what cron mails, only what
# somebody has to look at. Runs never overlap: there is one launcher for each inbox.
#
# Usage: cron.sh --inbox PATH [LAUNCH-FLAG...] -- claude "Read CLAUDE.md"
#
# A crontab (crontab -e) has to say where the commands are, with absolute paths, for
# cron expands no variables there; and in a crontab line % is a line's end:
#
#   PATH=/home/me/go/bin:/home/me/.local/bin:/usr/local/bin:/usr/bin:/bin
#   MAILTO=me@example.com
#   */10 * * * * /opt/heartbeat/cron.sh --inbox /srv/agent/queue/inbox.jsonl --cwd /srv/agent/project -- claude "Read CLAUDE.md"
#
# Claude Code finds its login by HOME, which cron sets. To keep a record of what goes
# well, too, add --log FILE.
#
# Exit status: that of heartbeat-launch. Silent are 0 (nothing waited, or all was
# answered) and 75 (work is left for a later run, or somebody else is at it), unless
# session after session came to nothing; and 77 (a login, a bill or a model that only a
# person can put right) is told once a day by runs that only find it still so.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

# In its place, so that whoever ends this process ends the launcher.
exec heartbeat-launch --output mail "$@" </dev/null 2>&1
