package words

import (
	"fmt"
	"strconv"
	"time"
)

// Size is a number of bytes with a unit: 512 B, 1.5 kB, 12.3 MB. The units are
// powers of 1000, as disks are sold and df -H counts.
func Size(bytes int64) string {
	if bytes > -1000 && bytes < 1000 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	n, units := float64(bytes), "kMGTPE"
	for n /= 1000; (n >= 999.95 || n <= -999.95) && len(units) > 1; n /= 1000 {
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %cB", n, units[0])
}

// Took is how long something took, in the two largest units that matter to
// people: 250ms, 1.2s, 45s, 5m 12s, 3h 5m, 3d 4h.
func Took(d time.Duration) string {
	d = max(0, d) // a clock may be set back
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute-time.Second/2:
		return d.Round(time.Second).String()
	case d < time.Hour-time.Second/2:
		return twoUnits(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d < day-time.Minute/2:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d.Round(time.Hour), day, "d", time.Hour, "h")
}

// Ago is how long ago something happened, in one unit: 45s ago, 3m ago, 12d ago.
func Ago(now, then time.Time) string {
	d := now.Sub(then)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.length {
			return fmt.Sprintf("%d%s ago", d/unit.length, unit.name)
		}
	}
	return "just now" // also where a clock was set back
}

const day = 24 * time.Hour

func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d%s", rest, smallName)
	}
	return text
}
