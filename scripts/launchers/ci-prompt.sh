#!/usr/bin/env bash
# A pipeline step that sends one prompt to an agent and waits for the answer.
#
#   ci-prompt.sh --inbox PATH --id ID [FLAG...] [-- CLAUDE-FLAG...] <PROMPT
#
# It is heartbeat ask by the name that pipelines know; heartbeat ask --help has the flags and
# the exit statuses.
command -v heartbeat >/dev/null || { echo 'ci-prompt: heartbeat is not on the PATH' >&2; exit 78; }
exec heartbeat ask "$@"
