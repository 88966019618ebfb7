package codex

// lookBack is how much of a rollout's end is read for a reply.
const lookBack = 256 << 10

// Said reports whether a rollout has a reply between two offsets, and behind it what the
// request with the reply took, as far as the last 256 KiB of that tell.
func Said(path string, from, to int64, reply string) bool {
	said, counted := false, false
	begin := max(0, from, to-lookBack)
	err := each(path, begin, begin, to, func(l line, _ int64) {
		switch {
		case l.reply() == reply && reply != "":
			said, counted = true, false
		case l.kind == "token_usage_record":
			counted = said
		}
	})
	return err == nil && counted
}
