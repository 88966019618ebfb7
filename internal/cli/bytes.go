package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is the value of a flag that takes an amount of memory or disk space: bytes
// (1048576), or a number with a unit of 1024 (512K, 100M, 4G, 1T).
type Bytes int64

// byteUnits are the units, the largest first.
var byteUnits = []struct {
	letter string
	size   float64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// Set takes what was typed.
func (b *Bytes) Set(text string) error {
	unit := 1.0
	number := strings.TrimSuffix(strings.ToUpper(text), "IB")
	for _, u := range byteUnits {
		if short, found := strings.CutSuffix(number, u.letter); found {
			number, unit = short, u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*unit < math.MaxInt64) { // NaN is neither
		return errors.New("it takes a number of bytes, such as 1048576, 512K, 100M or 4G")
	}
	*b = Bytes(n * unit)
	return nil
}

// String is the amount in the largest unit that leaves a whole number.
func (b *Bytes) String() string {
	for _, u := range byteUnits {
		if *b > 0 && int64(*b)%int64(u.size) == 0 {
			return strconv.FormatInt(int64(*b)/int64(u.size), 10) + u.letter
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type is what the help calls it.
func (b *Bytes) Type() string { return "bytes" }
