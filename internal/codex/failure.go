package codex

import "heartbeat/internal/flat"

// Failed reports whether the rollout shows that an error of the API ended the text's turn,
// and names it as [failureOf] does. The client tells no hook of that.
func (d Delivery) Failed() (name, message string, failed bool) {
	open := false
	err := d.each(func(_ *reading, l line, at int64) {
		switch {
		case l.hands(d.Text) && at >= d.Size:
			open, failed = true, false
		case l.isPrompt(), l.is("turn_aborted"):
			open = false
		case open && l.is("task_complete"):
			if wrong := l.Get("error"); wrong != "" && wrong != "null" {
				name, message, failed = failureOf(wrong.Get("codex_error_info")), wrong.Get("message").Text(), true
			}
			open = false
		}
	})
	return name, message, err == nil && failed
}

// failureOf is the name that Claude Code has for an error. The client says what it is as a
// word, or as an object with the status of the answer.
func failureOf(info flat.Value) string {
	if info.IsString() {
		switch info.Text() {
		case "unauthorized":
			return "authentication_failed"
		case "usage_limit_exceeded":
			return "rate_limit"
		case "server_overloaded":
			return "overloaded"
		case "internal_server_error":
			return "server_error"
		case "bad_request":
			return "invalid_request"
		}
		return "unknown"
	}
	status := ""
	flat.Each([]byte(info), func(_, value []byte) { status = string(flat.Value(value).Get("http_status_code")) })
	switch status {
	case "400":
		return "invalid_request"
	case "401", "403":
		return "authentication_failed"
	case "402":
		return "billing_error"
	case "404":
		return "model_not_found"
	case "429":
		return "rate_limit"
	case "529", "503":
		return "overloaded"
	case "":
		return "unknown"
	}
	if status >= "500" && len(status) == len("500") {
		return "server_error"
	}
	return "unknown"
}
