package price

import (
	"fmt"
	"strings"
)

// MaxTokens is the largest limit of tokens.
const MaxTokens = 1_000_000_000_000

// ParseTokens reads a person's limit of tokens, such as 4000, 400k or 1.5M. It is above 0 and at most [MaxTokens].
func ParseTokens(s string) (int64, error) {
	number, shift := s, 0
	if n := len(s) - 1; n >= 0 {
		switch s[n] {
		case 'k', 'K':
			number, shift = s[:n], 3
		case 'm', 'M':
			number, shift = s[:n], 6
		}
	}
	digits, negative := strings.CutPrefix(number, "-")
	whole, fraction, pointed := strings.Cut(digits, ".")
	fraction = strings.TrimRight(fraction, "0")
	switch {
	case whole == "" || !allDigits(whole) || !allDigits(fraction) || pointed && strings.HasSuffix(digits, "."):
		return 0, fmt.Errorf("%q is no number of tokens, such as 4000, 400k or 1.5M", clipped(s))
	case len(fraction) > shift:
		return 0, fmt.Errorf("%q is no whole number of tokens", clipped(s))
	}
	n, _ := scaled(strings.TrimLeft(whole+fraction, "0"), shift-len(fraction)) // the largest number is refused, too
	if negative {
		n = -1
	}
	return Limit(clipped(s), n, MaxTokens, "tokens above 0, such as 400k", "1000000000000 tokens")
}
