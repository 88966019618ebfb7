package doctor

// checkFlags parses the arguments of each hook as the hook does.
func checkFlags(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	var mine []*wire
	for _, w := range e.wires {
		if e.relate(w) == same {
			mine = append(mine, w)
		}
	}
	var all []Check
	for _, g := range distinct(mine) {
		w := g[0]
		switch {
		case !w.Exact:
			all = append(all, warn("flags", e.execForm(w), "what a shell makes of this cannot be told: %s (%s)", w.line(), e.show(w.source.path)))
		case w.err != nil:
			all = append(all, fail("flags", "correct the arguments of "+w.Member+" in "+w.source.path,
				"the hook does not take %s, and then approves every stop: %v", quote(w.Flags...), w.err))
		default:
			all = append(all, ok("flags", "the hook takes %s", quote(w.Flags...)))
		}
	}
	return all
}
