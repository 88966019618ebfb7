// Package client runs the real Claude Code client inside a test.
//
// The client talks to a model.Model on loopback and lives in a scratch workspace: a
// home folder and a project folder that the test owns, and an environment built from
// nothing, so that a session that runs the tests does not pass its identity on.
//
// The client is not part of this repository. HEARTBEAT_CLAUDE names it; without
// that variable Find skips the test:
//
//	binary := client.Find(t)
//	model, err := model.Start(nil)
//	w := client.New(t, binary, model)
//	w.Record("SessionStart", "UserPromptSubmit")
//	run := w.Print("hello", client.Options{Settings: w.WriteSettings("hooks", hooks)})
//	result, err := run.Wait(ctx)
//
// The harness never sleeps for a guessed time. A test learns that something
// happened from the model's requests, from recorded hook events, or from the
// screen.
//
// It keeps the client off the network as far as settings can. To be certain,
// run the tests in a network namespace of their own that has only loopback.
package client
