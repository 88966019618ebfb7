package queue

import (
	"strings"

	"github.com/tidwall/gjson"

	"heartbeat/inbox"
)

// Exit is what was seen of a client that has ended. The zero value says that nobody saw
// its end. [Exit.See] fills it in, but for Known and Reason.
type Exit struct {
	// Known says that its standard output was read to the end.
	Known bool
	// Session is the session as its messages name it last, "" for none.
	Session string
	// Began says that there was a message of type system with the subtype init, or one of
	// another type: before that, the client asks no model.
	Began bool
	// Asked says that there was an answer of the model: an assistant message whose model
	// is not <synthetic>.
	Asked bool
	// Result is its last result message, nil for none.
	Result *Result
	// Failure is the error of the API that ended its last turn, nil for none. Under -p
	// the client may end its hook before that has noted it.
	Failure *inbox.Failure
	// Reason is why its entry was not answered, as a dead letter should say it, such as
	// [inbox.ReasonCanceled]; "" to leave that open.
	Reason inbox.Reason
}

// Result is a result message.
type Result struct {
	IsError bool
	Turns   int
}

// synthetic is the model of the messages that the client writes in the model's name.
const synthetic = "<synthetic>"

// See takes in a message of the client's stream: a JSON object.
func (x *Exit) See(message []byte) {
	of := gjson.GetManyBytes(message, "type", "subtype", "session_id")
	if of[2].Type == gjson.String {
		x.Session = of[2].Str
	}
	kind := of[0].Str
	x.Began = x.Began || kind != "" && (kind != "system" || of[1].Str == "init")
	switch kind {
	case "assistant":
		x.seeAnswer(message)
	case "result":
		of := gjson.GetManyBytes(message, "is_error", "num_turns", "result")
		x.Result = &Result{IsError: of[0].Bool(), Turns: int(of[1].Int())}
		if x.Failure != nil && !x.Result.IsError {
			x.Failure = nil
		}
	}
}

func (x *Exit) seeAnswer(message []byte) {
	if gjson.GetBytes(message, "parent_tool_use_id").Type == gjson.String {
		return // a subagent's
	}
	if gjson.GetBytes(message, "message.model").Str != synthetic {
		x.Asked, x.Failure = true, nil
		return
	}
	name := gjson.GetBytes(message, "error")
	if name.Type != gjson.String || name.Str == "" {
		return
	}
	var said []string
	for _, part := range gjson.GetBytes(message, "message.content.#.text").Array() {
		said = append(said, part.Str)
	}
	x.Failure = &inbox.Failure{Error: name.Str, Message: strings.Join(said, "\n")}
}
