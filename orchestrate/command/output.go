package command

// MaxOutput bounds what is kept of each of a command's two streams, in bytes.
const MaxOutput = 16 << 20

// output keeps the beginning of what is written. It has no other method than
// Write: one that io.Copy prefers would go around the bound.
type output struct {
	kept []byte
	cut  bool
}

func (o *output) Write(p []byte) (int, error) {
	room := MaxOutput - len(o.kept)
	if len(p) > room {
		o.cut = true
	}
	o.kept = append(o.kept, p[:min(room, len(p))]...)
	return len(p), nil
}
