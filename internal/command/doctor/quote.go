package doctor

import "heartbeat/internal/words"

func quote(line ...string) string { return words.Shell(line...) }
