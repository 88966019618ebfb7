#!/bin/sh
# Two accounts of an operator for heartbeat-nats, made with nsc: WORK has the stream WORK, and its
# users send work and look after it. AGENTS has the agents, one user each, and imports from WORK
# what an agent needs. It has no stream: what an agent has the server answer to a subject of work
# goes nowhere there.
#
#   nsc init, or nsc env --operator NAME    once, for the operator
#   sh accounts.sh                          once
#   nsc push --all                          to the server's resolver
#   nsc add user --account WORK operator    who runs setup, status, dead and drain
#
# From then on another agent is another file, and the server is told nothing:
#
#   heartbeat-nats setup agent NAME --account-seed agents.nk --account "$(nsc describe account AGENTS --field sub | tr -d '"')"
#
# agents.nk is the seed of the signing key that this script makes: nsc keeps it below its key store,
# and whoever has it can make users of AGENTS. It stays where agents are made, not where they run.
set -eu

nsc add account WORK
nsc edit account WORK --js-mem-storage -1 --js-disk-storage -1 --js-streams -1 --js-consumer -1
nsc add account AGENTS
nsc edit account AGENTS --sk generate
work=$(nsc describe account WORK --field sub | tr -d '"')

heartbeat-nats setup agent NAME --json | jq -r '.publish[]' | sed 's/\.NAME$/.*/' | while read -r subject; do
    case $subject in
    *MSG.NEXT*) responses=Stream ;; # the message, and what the server says of the request
    *) responses=Singleton ;;
    esac
    nsc add export --account WORK --service --name "$subject" --subject "$subject" --response-type "$responses"
    nsc add import --account AGENTS --service --name "$subject" --src-account "$work" --remote-subject "$subject"
done
