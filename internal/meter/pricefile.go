package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"heartbeat/internal/disk"
	"heartbeat/internal/price"
)

// PricesPath is where a person says what models cost, heartbeat/prices.toml in the folder of the
// user's settings; empty where the user has none.
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

// maxPrices is how long that file may be, in bytes.
const maxPrices = 256 << 10

// priceFile is what it holds. What is left out is as it is built in.
type priceFile struct {
	Multiplier *float64            `toml:"multiplier"`
	Models     map[string]ownRates `toml:"models"`
}

type ownRates struct {
	Input        *float64 `toml:"input"`
	Output       *float64 `toml:"output"`
	CacheRead    *float64 `toml:"cache-read"`
	CacheWrite   *float64 `toml:"cache-write"`
	CacheWrite1h *float64 `toml:"cache-write-1h"`
	WebSearch    *float64 `toml:"web-search"`
	Multiplier   *float64 `toml:"multiplier"`
}

// Prices reads the table of prices. With an error it is what is built in.
func Prices() (*price.Table, error) {
	file := PricesPath()
	if file == "" {
		return new(price.Table), nil
	}
	text, err := disk.ReadFile(file, maxPrices)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && !isThere(file) {
		return new(price.Table), nil
	}
	var t *price.Table
	if err == nil {
		t, err = parsePrices(text)
	}
	if err != nil {
		return new(price.Table), fmt.Errorf("read what models cost in %s, so that the prices that are built in count: %w", file, err)
	}
	t.Path = file
	return t, nil
}

// isThere is false in a folder of somebody else's, which HOME may name under sudo.
func isThere(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func parsePrices(text []byte) (*price.Table, error) {
	var f priceFile
	d := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		if strict := (*toml.StrictMissingError)(nil); errors.As(err, &strict) && len(strict.Errors) > 0 {
			row, _ := strict.Errors[0].Position()
			return nil, fmt.Errorf("line %d: there is no %s", row, strings.Join(strict.Errors[0].Key(), "."))
		}
		return nil, err
	}
	t := new(price.Table)
	if f.Multiplier != nil {
		if err := rateIn("multiplier", *f.Multiplier); err != nil {
			return nil, err
		}
		t.Multiplier = *f.Multiplier
	}
	for pattern, own := range f.Models {
		r, err := own.rates(pattern)
		if err != nil {
			return nil, err
		}
		t.Own = append(t.Own, price.Own{Pattern: strings.ToLower(pattern), Rates: *r})
	}
	slices.SortFunc(t.Own, func(a, b price.Own) int { return strings.Compare(a.Pattern, b.Pattern) })
	return t, nil
}

func (o ownRates) rates(pattern string) (*price.Rates, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("models.%q is no pattern: %w", pattern, err)
	}
	r := price.BuiltIn(pattern)
	if r == nil {
		if o.Input == nil || o.Output == nil {
			return nil, fmt.Errorf("models.%q is built in under no such name: say its input and its output, in dollars for a million tokens", pattern)
		}
		// What the cache costs is left to the makers who ask for it alike.
		r = &price.Rates{CacheRead: *o.Input, CacheWrite: *o.Input}
	}
	if o.Input != nil || o.Output != nil { // they are of one kind of prompt
		r.LongAbove, r.Long, r.Fast = 0, nil, nil
	}
	for _, of := range []struct {
		name string
		said *float64
		into *float64
	}{
		{"input", o.Input, &r.Input}, {"output", o.Output, &r.Output}, {"cache-read", o.CacheRead, &r.CacheRead},
		{"cache-write", o.CacheWrite, &r.CacheWrite}, {"cache-write-1h", o.CacheWrite1h, &r.CacheWrite1h}, {"web-search", o.WebSearch, &r.WebSearch},
	} {
		if of.said == nil {
			continue
		}
		if err := rateIn(fmt.Sprintf("models.%q.%s", pattern, of.name), *of.said); err != nil {
			return nil, err
		}
		*of.into = *of.said
	}
	if o.Multiplier != nil {
		if err := rateIn(fmt.Sprintf("models.%q.multiplier", pattern), *o.Multiplier); err != nil {
			return nil, err
		}
		r = r.Times(*o.Multiplier)
	}
	return r, nil
}

func rateIn(name string, v float64) error {
	if math.IsNaN(v) || v < 0 || v > 1e6 {
		return fmt.Errorf("%s is %v: it is a number from 0 to a million", name, v)
	}
	return nil
}
