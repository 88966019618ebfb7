package cli

// Guarded is why a run goes no further, with what lets it continue.
func Guarded(guard string, outOfSteps bool) string {
	if outOfSteps {
		return guard + ": a greater --max-iterations of heartbeat orchestrate lets it continue"
	}
	return guard
}
