// Package model is a stand-in for the Messages API on loopback.
//
// Tests point a real client at it, so that a whole session can run without a
// network, without a key and with answers that are known in advance. It speaks
// just enough of the API for that:
//
//	POST /v1/messages               one JSON message, or SSE when "stream" is true
//	POST /v1/messages/count_tokens  {"input_tokens": 1}
//	HEAD or GET anything            200
//
// A client makes two kinds of request on /v1/messages. A main request carries
// the conversation (it offers tools to the model); a side request is the
// client's own errand, such as finding a title. Only main requests reach the
// script, because a side request that took a scripted answer would shift every
// later answer by one. A subagent's requests offer tools too and count as main,
// and so does every retry: nothing in a request tells them apart.
package model
