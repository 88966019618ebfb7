package price

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxUSD is the largest sum of dollars, of either sign, that is believed.
const MaxUSD = 1_000_000_000

const perDollar = 1_000_000_000 // billionths

var (
	errNoNumber = errors.New("it is not a number of dollars")
	errHuge     = errors.New("it is more than 1000000000 dollars")
)

// DollarsOf reads a JSON number of dollars as billionths, rounded half away from 0. It refuses what is no finite
// number, and more than [MaxUSD] of either sign.
func DollarsOf(number string) (nanos int64, err error) { return decimal(number, 9) }

// decimal reads a JSON number, times ten to the power of shift, as [DollarsOf] does.
func decimal(number string, shift int) (n int64, err error) {
	digits, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := digits, 0
	if at := strings.IndexAny(digits, "eE"); at >= 0 {
		mantissa = digits[:at]
		n, err := strconv.ParseInt(digits[at+1:], 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond the range, the largest exponent does
			return 0, errNoNumber
		}
		exponent = int(n)
	}
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	if whole == "" || pointed && fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return 0, errNoNumber
	}
	n, err = scaled(strings.TrimLeft(whole+fraction, "0"), exponent+shift-len(fraction))
	if negative && err == nil {
		n = -n
	}
	return n, err
}

// scaled returns the number with these digits, without leading zeros, times ten to the power of shift. With errHuge it
// returns the largest number.
func scaled(digits string, shift int) (int64, error) {
	kept := len(digits) + shift // digits before the point
	switch {
	case digits == "" || kept < 0:
		return 0, nil
	case kept > 19:
		return math.MaxInt64, errHuge
	}
	digits += strings.Repeat("0", max(0, shift))
	n, _ := strconv.ParseUint("0"+digits[:kept], 10, 64) // 19 digits fit
	if kept < len(digits) && digits[kept] >= '5' {
		n++
	}
	if n > MaxUSD*perDollar {
		return math.MaxInt64, errHuge
	}
	return int64(n), nil
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// ParseUSD reads a person's limit in dollars, such as 2.50, as billionths. It is above 0 and at most [MaxUSD].
func ParseUSD(s string) (nanos int64, err error) {
	if nanos, err = DollarsOf(s); err != nil && !errors.Is(err, errHuge) {
		return 0, fmt.Errorf("%q is no number of dollars, such as 2.50", clipped(s))
	}
	return Limit(clipped(s), nanos, MaxUSD*perDollar, "dollars above 0, such as 2.50", "1000000000 dollars")
}

// Limit refuses a limit that is not above 0, or above most. typed is what a person typed, instead an example of what to
// give, and mostText the text of most.
func Limit[T ~int64](typed string, n, most T, instead, mostText string) (T, error) {
	switch {
	case n < 0:
		return 0, fmt.Errorf("%q is negative: give %s", typed, instead)
	case n == 0:
		return 0, fmt.Errorf("%q is nothing: give %s, or leave it out for no limit", typed, instead)
	case n > most:
		return 0, fmt.Errorf("%q is too much: at most %s", typed, mostText)
	}
	return n, nil
}

// clipped shortens a person's text for an error.
func clipped(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// FormatUSD returns dollars for people: to the cent (2.50), and below a cent to four significant digits (0.0042).
func FormatUSD(nanos int64) string {
	n := uint64(max(nanos, -nanos))
	step := uint64(perDollar / 100)
	if n < step {
		for step = 1; n/step >= 10_000; {
			step *= 10
		}
	}
	rounded := Nanos((n + step/2) / step * step)
	if nanos < 0 {
		rounded = -rounded
	}
	whole, fraction, _ := strings.Cut(rounded.String(), ".")
	return whole + "." + fraction + "00"[min(len(fraction), 2):]
}

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
	n, err := decimal(number, shift) // the largest number is refused, too
	_, fraction, _ := strings.Cut(number, ".")
	switch {
	case errors.Is(err, errNoNumber) || strings.ContainsAny(number, "eE"):
		return 0, fmt.Errorf("%q is no number of tokens, such as 4000, 400k or 1.5M", clipped(s))
	case len(strings.TrimRight(fraction, "0")) > shift:
		return 0, fmt.Errorf("%q is no whole number of tokens", clipped(s))
	case strings.HasPrefix(number, "-"):
		n = -1
	}
	return Limit(clipped(s), n, MaxTokens, "tokens above 0, such as 400k", "1000000000000 tokens")
}
