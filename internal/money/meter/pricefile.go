package meter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// PricesPath returns the file with a person's own prices of models, heartbeat/prices.toml in the user's settings folder,
// or "" for a user without that folder.
func PricesPath() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "heartbeat", "prices.toml")
}

// PricesPlace is [PricesPath] for a sentence.
func PricesPlace() string {
	return cmp.Or(PricesPath(), "heartbeat/prices.toml in the folder of your settings, which needs HOME")
}

// SayPrices says what to do about a model without a price.
func SayPrices() string {
	if _, err := Prices(); err != nil {
		return err.Error()
	}
	return "say it in " + PricesPlace() + " (heartbeat costs --prices)"
}

const maxPrices = 256 << 10

// Prices reads the table of prices. With an error it returns what could be read of it.
func Prices() (*price.Table, error) {
	file := PricesPath()
	if file == "" {
		return new(price.Table), nil
	}
	text, err := disk.ReadFile(file, maxPrices)
	if err != nil {
		if there, _ := disk.Exists(file); !there { // also in somebody else's folder, which HOME may name under sudo
			return new(price.Table), nil
		}
	}
	t := new(price.Table)
	if err == nil {
		t, err = parsePrices(text)
	}
	if t.Path = file; err != nil {
		err = fmt.Errorf("read what models cost in %s, so that the prices that are built in count for the rest: %w", file, err)
	}
	return t, err
}

// parsePrices reads the part of TOML that the file needs: tables [models.NAME], and numbers. A library for all of TOML
// would make each turn of the hook a fiftieth slower. It passes over what it cannot read, and returns the first such error.
func parsePrices(text []byte) (_ *price.Table, first error) {
	const unread = "\n" // no model has that name
	pattern := ""
	said := map[string]map[string]float64{pattern: {}, unread: {}} // by model, "" for all of them
	for n, line := range strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") {
		model, key, number, err := parseSetting(line)
		// Case does not matter. People name a model with [1m]. Answers do not, and in a pattern it would match "1" or "m".
		model = strings.TrimSuffix(strings.ToLower(model), "[1m]")
		_, again := said[pattern][key]
		switch {
		case err != nil:
		case model != "" && said[model] != nil:
			err = fmt.Errorf("[models.%q] stands there twice", model)
		case model != "":
			pattern = model
			said[pattern] = map[string]float64{}
		case key == "":
		case pattern == "" && (key != "multiplier" || again):
			err = fmt.Errorf("%s is no setting, or stands there twice: before the models there is but multiplier", words.Brief(key))
		case key != "multiplier" && rateOf(new(price.Rates), key) == nil:
			err = fmt.Errorf("%s is none of input, output, cache-read, cache-write, cache-write-1h, web-search and multiplier", words.Brief(key))
		case again:
			err = fmt.Errorf("%s stands there twice", key)
		case number < 0 || number > 1e6:
			err = fmt.Errorf("%s is %v: it is a number from 0 to a million", key, number)
		default:
			said[pattern][key] = number
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("line %d: %w", n+1, err))
			if strings.HasPrefix(strings.TrimSpace(line), "[") {
				pattern = unread
			}
		}
	}
	t := new(price.Table)
	if by, is := said[""]["multiplier"]; is {
		t.Multiplier = &by
	}
	delete(said, "")
	delete(said, unread)
	for _, pattern := range slices.Sorted(maps.Keys(said)) {
		r, err := ratesOf(pattern, said[pattern])
		if first = cmp.Or(first, err); err == nil {
			t.Own = append(t.Own, price.Own{Pattern: pattern, Rates: *r})
		}
	}
	return t, first
}

// parseSetting returns what a line sets: the models of the lines below, or a number.
func parseSetting(line string) (pattern, key string, number float64, err error) {
	const white = " \t"
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return "", "", 0, errors.New("it is not text")
	}
	rest := strings.Trim(line, white)
	if head, is := strings.CutPrefix(rest, "[models."); is {
		if pattern, rest, is = cutKey(head); !is {
			return "", "", 0, errors.New("it is no [models.NAME] or [models.\"NAME\"]")
		}
		if rest, is = strings.CutPrefix(strings.Trim(rest, white), "]"); !is {
			return "", "", 0, errors.New("its ] is missing")
		}
	} else if rest != "" && rest[0] != '#' {
		name, after, is := cutKey(rest)
		after, isSet := strings.CutPrefix(strings.TrimLeft(after, white), "=")
		digits := strings.TrimLeft(after, white)
		end := strings.IndexFunc(digits, func(c rune) bool { return !strings.ContainsRune("+-.eE0123456789", c) })
		if end < 0 {
			end = len(digits)
		}
		digits, rest = digits[:end], digits[end:]
		key = name
		if number, err = strconv.ParseFloat(digits, 64); !is || !isSet || err != nil || !json.Valid([]byte(strings.TrimPrefix(digits, "+"))) { // TOML has the numbers of JSON, and a sign
			return "", "", 0, errors.New("it is no [models.NAME], and no NAME = NUMBER, such as input = 2.5")
		}
	}
	if rest = strings.Trim(rest, white); rest != "" && rest[0] != '#' {
		return "", "", 0, fmt.Errorf("%s does not belong there", words.Brief(rest))
	}
	return pattern, key, number, nil
}

// cutKey cuts off the leading name, bare or in quotes.
func cutKey(text string) (key, rest string, is bool) {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		key, rest, is = strings.Cut(text[1:], text[:1])
		return key, rest, is && key != "" && !strings.ContainsRune(key, '\\')
	}
	end := strings.IndexFunc(text, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], end > 0
}

// rateOf returns the rate of r that key sets, or nil.
func rateOf(r *price.Rates, key string) *float64 {
	return map[string]*float64{
		"input": &r.Input, "output": &r.Output, "cache-read": &r.CacheRead, "cache-write": &r.CacheWrite,
		"cache-write-1h": &r.CacheWrite1h, "web-search": &r.WebSearch,
	}[key]
}

// ratesOf returns the rates of a model. Rates left out are the built-in ones.
func ratesOf(pattern string, said map[string]float64) (*price.Rates, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("[models.%q] is no pattern: %w", pattern, err)
	}
	input, hasInput := said["input"]
	_, hasOutput := said["output"]
	r := price.BuiltIn(pattern)
	if r == nil {
		if !hasInput || !hasOutput {
			return nil, fmt.Errorf("[models.%q] is built in under no such name: say its input and its output, in dollars for a million tokens", pattern)
		}
		r = &price.Rates{CacheRead: input, CacheWrite: input} // by default the cache costs what input does
	}
	if hasInput || hasOutput { // they hold for prompts of every length and speed
		r.LongAbove, r.Long, r.Fast = 0, nil, nil
	}
	for key, rate := range said {
		if into := rateOf(r, key); into != nil {
			*into = rate
		}
	}
	if by, is := said["multiplier"]; is {
		r = r.Times(by)
	}
	return r, nil
}
