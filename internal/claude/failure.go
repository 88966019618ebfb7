package claude

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Remedy is what a turn that ended in an API error asks for. The zero Remedy
// asks for nothing: it tries again at once.
type Remedy struct {
	// Person: nothing heals by itself, and delivery is to be paused until
	// somebody mends it. There is no back-off then.
	Person bool
	// Counts: the failure may be the entry's own fault, so it uses up one of the
	// entry's attempts.
	Counts bool
	// First is the back-off after one failure, and each further one in a row
	// doubles it, up to Most.
	First, Most time.Duration
}

// Back-offs. A client that reports a rate limit or an overload has tried again
// for minutes by itself; after any other error the next turn may well succeed.
const (
	soon   = 5 * time.Second
	later  = time.Minute
	seldom = 30 * time.Minute
)

// The names that a message may say more than.
const (
	serverError    = "server_error"
	unknownFailure = "unknown"
	invalidRequest = "invalid_request"
)

var (
	person  = Remedy{Person: true}
	suspect = Remedy{Counts: true, First: soon, Most: seldom}
	outage  = Remedy{First: soon, Most: seldom}
	limited = Remedy{First: later, Most: seldom}
)

// failures are the documented values of a StopFailure's error, which are also
// those in the schema of release 2.1.329.
var failures = [...]struct {
	name   string
	remedy *Remedy
}{
	{"authentication_failed", &person},
	{"oauth_org_not_allowed", &person},
	{"account_on_hold", &person},
	{"verification_required", &person},
	{"billing_error", &person},
	{"rate_limit", &limited},
	{"overloaded", &limited},
	{invalidRequest, &suspect},
	{"model_not_found", &person},
	{serverError, &suspect},
	{unknownFailure, &suspect},
	{"max_output_tokens", &suspect},
	{"cloud_credential_error", &person},
}

// FailureNames are the documented values of a StopFailure's error.
func FailureNames() []string {
	names := make([]string, 0, len(failures))
	for _, f := range failures {
		names = append(names, f.name)
	}
	return names
}

// RemedyFor is the remedy for a StopFailure with that error and
// last_assistant_message. A name that is not documented, or none, is taken for
// unknown.
//
// The message matters where the name says too little. Measured on 2.1.329: HTTP
// 529 is a server_error ("API Error: 529 Overloaded. This is a server-side
// issue, usually temporary"), and so is a server that cannot be reached; 400 is
// unknown or, with words of the client's own, an invalid_request; 429 is a rate_limit ("API Error: Request rejected (429)"), 401 and
// 403 are authentication_failed, and 404 is model_not_found.
func RemedyFor(name, message string) Remedy {
	for _, f := range failures {
		if f.name == name && name != serverError && name != unknownFailure && name != invalidRequest {
			return *f.remedy
		}
	}
	text := strings.ToLower(message)
	status := httpStatus(text)
	switch {
	case name != serverError && (status == 402 || containsAny(text, stuck[:])):
		return person
	case name == invalidRequest:
		return suspect
	case name != serverError && (status == 429 || showsLimit(text)):
		return limited
	case status >= 400 && status < 500 && status != 408:
		return suspect // the API was there, and refused what it was sent
	case status >= 502 && status <= 504 || status == 529 || containsAny(text, outages[:]):
		return outage
	}
	return suspect
}

// Backoff is how long to wait after that many failures in a row, from 1.
// A random number in [0, 1) adds up to a fifth, so that sessions which failed
// together do not come back together.
func (r Remedy) Backoff(streak int, random float64) time.Duration {
	wait := min(r.First, r.Most)
	for ; streak > 1 && wait > 0 && wait < r.Most; streak-- {
		wait = min(wait, r.Most-wait) + wait
	}
	if !(random > 0) { // a NaN neither
		return wait
	}
	jitter := time.Duration(min(random, 1) * float64(wait) / 5)
	return wait + min(jitter, math.MaxInt64-wait)
}

// leads are what stands before an HTTP status: the client's first, in either
// form, then those of gateways.
var leads = [...]string{"api error: ", "request rejected (", "http ", "status code ", "status "}

// httpStatus is the HTTP status that the text of an error names, or 0.
func httpStatus(text string) int {
	for _, lead := range leads {
		_, rest, found := strings.Cut(text, lead)
		if !found || len(rest) < 3 || len(rest) > 3 && rest[3] >= '0' && rest[3] <= '9' {
			continue
		}
		if status, err := strconv.ParseUint(rest[:3], 10, 16); err == nil {
			return int(status)
		}
	}
	return 0
}

// showsLimit recognises the client's and the API's wording of a limit on use,
// such as the API's "You have reached your specified API usage limits", which
// has status 400. Limits on the length of a request are another matter.
func showsLimit(text string) bool {
	return containsAny(text, limits[:]) || strings.Contains(text, "hit your ") && strings.Contains(text, "limit")
}

// stuck are errors that every further entry would meet as well, until a person
// changes the account, or makes the conversation shorter: the client's words in
// 2.1.329, for errors that it calls invalid_request or unknown.
var stuck = [...]string{
	"disabled organization", "organization has been disabled", "credit balance is too low", "usage credits ran out",
	"prompt is too long", "request too large (max",
}

var limits = [...]string{"rate limit", "rate_limit", "rate-limit", "usage limit", "too many requests"}

// outages are the signs of a service that is overloaded or out of reach, which
// no entry is to blame for.
var outages = [...]string{
	"overloaded", "at capacity",
	// The client's words in 2.1.329, for errors that it calls server_error.
	"unable to connect", "connection dropped", "connection refused", "can't reach the api", "no internet route",
	"couldn't connect", "connection to the api was lost", "connection lost", "connection closed", "connection error",
	"no response from api", "the api is temporarily unavailable", "timed out", "the response stalled",
	"the response stopped arriving", "your computer went to sleep", "failed to refresh oauth token",
	// What runtimes, proxies and other releases say, and the client quotes.
	"fetch failed", "socket hang up", "stream idle timeout", "gateway timeout", "gateway time-out", "timeouterror",
	"a timeout occurred", "econnrefused", "econnreset", "econnaborted", "etimedout", "enotfound", "eai_again", "epipe",
	"enetunreach", "enetdown", "ehostunreach", "ehostdown",
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// AsksForLogin reports whether a StopFailure's error is about who asks: the login,
// the key, or the account behind them.
func AsksForLogin(name string) bool {
	switch name {
	case "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required", "billing_error", "cloud_credential_error":
		return true
	}
	return false
}
