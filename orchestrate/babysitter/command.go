package babysitter

import (
	"fmt"
	"os"
)

// known is what was observed of versions other than the measured one.
func known(version string) string {
	switch version {
	case "0.0.174":
		return "with it tasks were delivered three times, and then the run failed"
	}
	return "nothing is known of it"
}

// Identity differs between installed CLIs: it has the command, and the size and time of the
// program.
func (c *CLI) Identity() (string, error) {
	path, err := c.executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("look at the babysitter CLI: %w", err)
	}
	return fmt.Sprintf("%q %s %d %d", c.command(), path, info.Size(), info.ModTime().UnixNano()), nil
}
