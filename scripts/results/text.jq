# What a person is told of an object of heartbeat results --exec: at most $most characters.
def said:
    if .kind == "result" then .line.result // .line.reply // ""
    else
        "This was set aside, and has no answer: \(.line.reason)"
        + (if (.line.failure | type) == "object" then "\n\n\([.line.failure.error, .line.failure.message] | map(strings) | join(": "))" else "" end)
    end;
said | tostring | if length > $most then .[:$most] + "\n\n[cut here: heartbeat results shows all of it]" else . end
