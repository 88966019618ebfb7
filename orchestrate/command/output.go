package command

// MaxOutput bounds, in bytes, how much of each output stream of a command is kept.
const MaxOutput = 16 << 20

// output keeps the beginning of what is written. It has no method but Write: io.Copy would
// prefer another one, which would bypass the bound.
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
