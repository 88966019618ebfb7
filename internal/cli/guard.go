package cli

// Guarded says why a run has stopped, and how to continue it.
func Guarded(guard string, outOfSteps bool) string {
	if outOfSteps {
		return guard + ": a greater --max-iterations lets it continue"
	}
	return guard
}
