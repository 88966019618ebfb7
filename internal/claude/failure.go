package claude

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Remedy is how to react to a turn that ended in an API error. The zero Remedy tries again at once.
type Remedy struct {
	Person bool // pauses delivery until somebody has fixed the cause, without a back-off
	Login  bool // the cause is the login, the key, or the account behind them
	Counts bool // uses up one of the entry's attempts: the failure may be its fault
	// First is the back-off after one failure. Every further failure in a row doubles it, up to Most.
	First, Most time.Duration
}

// Back-offs. The client retries a rate limit or an overload for minutes before it reports it. After any other error the
// next turn may well succeed.
const (
	soon   = 5 * time.Second
	later  = time.Minute
	seldom = 30 * time.Minute
)

// Error names so vague that the message decides.
const (
	serverError    = "server_error"
	unknownFailure = "unknown"
	invalidRequest = "invalid_request"
)

var (
	person  = Remedy{Person: true}
	login   = Remedy{Person: true, Login: true}
	suspect = Remedy{Counts: true, First: soon, Most: seldom}
	outage  = Remedy{First: soon, Most: seldom}
	limited = Remedy{First: later, Most: seldom}
)

// failures lists the documented values of a StopFailure's error. The schema in release 2.1.329 has the same ones.
var failures = [...]struct {
	name   string
	remedy *Remedy
}{
	{"authentication_failed", &login},
	{"oauth_org_not_allowed", &login},
	{"account_on_hold", &login},
	{"verification_required", &login},
	{"billing_error", &login},
	{"rate_limit", &limited},
	{"overloaded", &limited},
	{invalidRequest, &suspect},
	{"model_not_found", &person},
	{serverError, &suspect},
	{unknownFailure, &suspect},
	{"max_output_tokens", &suspect},
	{"cloud_credential_error", &login},
}

// FailureNames returns the documented values of a StopFailure's error.
func FailureNames() []string {
	names := make([]string, 0, len(failures))
	for _, f := range failures {
		names = append(names, f.name)
	}
	return names
}

// RemedyFor returns the remedy for a StopFailure with this error name and last_assistant_message. An undocumented or
// empty name counts as unknown.
//
// The message decides where the name is vague. Measured on 2.1.329:
//   - server_error is HTTP 529 ("API Error: 529 Overloaded. This is a server-side issue, usually temporary") and a server
//     that cannot be reached;
//   - unknown is HTTP 400; where the client words the error itself, 400 is an invalid_request;
//   - rate_limit is 429 ("API Error: Request rejected (429)"), authentication_failed 401 and 403, model_not_found 404.
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
		return suspect // the API was there and refused the request
	case status >= 502 && status <= 504 || status == 529 || containsAny(text, outages[:]):
		return outage
	}
	return suspect
}

// RemedyOf returns the remedy for a documented error as a pause's reason names it, "NAME: MESSAGE" or "NAME". For any
// other reason, such as a person's, it returns the zero Remedy.
func RemedyOf(reason string) Remedy {
	name, message, _ := strings.Cut(reason, ": ")
	if !slices.Contains(FailureNames(), name) {
		return Remedy{}
	}
	return RemedyFor(name, message)
}

// Backoff returns how long to wait after streak failures in a row, counted from 1. random in [0, 1) adds up to a fifth,
// so that sessions that failed together do not all retry together.
func (r Remedy) Backoff(streak int, random float64) time.Duration {
	wait := min(r.First, r.Most)
	for ; streak > 1 && wait > 0 && wait < r.Most; streak-- {
		wait = min(wait, r.Most-wait) + wait
	}
	if !(random > 0) { // also for NaN
		return wait
	}
	jitter := time.Duration(min(random, 1) * float64(wait) / 5)
	return wait + min(jitter, math.MaxInt64-wait)
}

// leads are the words before an HTTP status: first two of the client's, then those of gateways.
var leads = [...]string{"api error: ", "request rejected (", "http ", "status code ", "status "}

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

// showsLimit recognises a usage limit in the words of the client or the API, such as "You have reached your specified
// API usage limits", which has status 400. It does not mean a limit on a request's length.
func showsLimit(text string) bool {
	return containsAny(text, limits[:]) || strings.Contains(text, "hit your ") && strings.Contains(text, "limit")
}

// stuck are errors that every later entry would meet too, until a person changes the account or shortens the conversation.
// They are the client's words in 2.1.329 for errors that it names invalid_request or unknown.
var stuck = [...]string{
	"disabled organization", "organization has been disabled", "credit balance is too low", "usage credits ran out",
	"prompt is too long", "request too large (max",
}

var limits = [...]string{"rate limit", "rate_limit", "rate-limit", "usage limit", "too many requests"}

// outages are signs of a service that is overloaded or unreachable, for which no entry is to blame.
var outages = [...]string{
	"overloaded", "at capacity",
	// The client's words in 2.1.329 for errors that it names server_error.
	"unable to connect", "connection dropped", "connection refused", "can't reach the api", "no internet route",
	"couldn't connect", "connection to the api was lost", "connection lost", "connection closed", "connection error",
	"no response from api", "the api is temporarily unavailable", "timed out", "the response stalled",
	"the response stopped arriving", "your computer went to sleep", "failed to refresh oauth token",
	// What the client quotes from runtimes and proxies, and the words of other releases.
	"fetch failed", "socket hang up", "stream idle timeout", "gateway timeout", "gateway time-out", "timeouterror",
	"a timeout occurred", "econnrefused", "econnreset", "econnaborted", "etimedout", "enotfound", "eai_again", "epipe",
	"enetunreach", "enetdown", "ehostunreach", "ehostdown",
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
