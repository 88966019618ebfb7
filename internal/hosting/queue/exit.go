package queue

import "heartbeat/inbox"

// Exit is what was seen of a client that has ended. The zero value says that nobody saw
// its end.
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
	// Total is the total that it said last, in billionths of a dollar, nil for none.
	Total *int64
	// Failure is the error of the API that ended its last turn, nil for none. Under -p
	// the client may end its hook before that has noted it.
	Failure *inbox.Failure
	// Reason is why its entry was not answered, as a dead letter should say it, such as
	// [inbox.ReasonCanceled]; "" to leave that open.
	Reason inbox.Reason
	// Over is the limit that it was ended by, nil for none.
	Over *Over
}

// Result is a result message.
type Result struct {
	IsError bool
	Turns   int
}
