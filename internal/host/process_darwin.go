package host

func awaitDeath(pid int) { pollDeath(pid) }
