package doctor

import (
	"testing"
)

func TestPrices(t *testing.T) {
	w := newWorld(t)
	w.says("prices")
	t.Setenv("XDG_CONFIG_HOME", w.Home)
	w.write(w.Home+"/heartbeat/prices.toml", "nonsense", 0o600)
	w.says("prices", "warn prices.toml")
}
