// Package guild is a guild for tests: it takes the reports of hosted sessions and
// serves their tools as the guild of the babysitter does, counts what it applied and
// what came again, and fails on demand.
//
// It is an http.Handler ([Open]), and a program ([Main]) that tests start, kill and
// start again on the same port ([Launch]). What it holds is in its state file, so a
// restart forgets nothing but the faults.
//
//	POST /api/session/running|heartbeat|record   reports
//	GET, POST, DELETE /api/GROUP/ACTION          tools
//	GET  /control/sessions                       what it holds, by session id
//	POST /control/sessions                       {"id", "tools"}: a session that is to come
//	POST /control/tools                          a [Tool]
//	POST /control/faults                         a [Fault]
//	DELETE /control/faults                       no faults any more
package guild
