package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/money/price"
)

func TestLimits(t *testing.T) {
	c, err := config.Parse(with(t, "limits", map[string]any{
		"max-cost-per-entry": 2.5, "max-cost-per-session": "0", "max-cost-per-day": 0,
		"max-tokens-per-entry": "400k", "max-tokens-per-day": 5_000_000, "max-tokens-per-session": nil, "max-time-per-entry": "30m",
	}))
	require.NoError(t, err)
	assert.Equal(t, price.Plan{
		Entry: price.Limits{Nanos: 2_500_000_000, Tokens: 400_000, Time: 30 * time.Minute},
		Day:   price.Limits{Tokens: 5_000_000},
	}, c.Limits)
	assert.NotContains(t, c.Extra, "limits")
	for _, none := range []any{nil, map[string]any{}} {
		c, err := config.Parse(with(t, "limits", none))
		require.NoError(t, err)
		assert.False(t, c.Limits.Any())
	}
}

func TestLimitsRefused(t *testing.T) {
	for says, limits := range map[string]any{
		"limits must be an object, and is a number":                                5,
		"limits must be an object, and is an array":                                []any{},
		"limits.max-cost is no limit: they are max-cost-per-entry, max-cost-per":   map[string]any{"max-cost": 5},
		`limits["a b"] is no limit`:                                                map[string]any{"a b": 5},
		"limits.max-cost-per-entry must be a number or a string, and is a boolean": map[string]any{"max-cost-per-entry": true},
		"limits.max-cost-per-entry must not be empty":                              map[string]any{"max-cost-per-entry": ""},
		"limits.max-cost-per-entry cannot be used: ":                               map[string]any{"max-cost-per-entry": -1},
		"limits.max-cost-per-day cannot be used: ":                                 map[string]any{"max-cost-per-day": "NaN"},
		"limits.max-tokens-per-day cannot be used: ":                               map[string]any{"max-tokens-per-day": 1.5},
		"limits.max-tokens-per-session cannot be used: is no limit any more":       map[string]any{"max-tokens-per-session": "9999999999999"},
		"limits.max-time-per-entry cannot be used: ":                               map[string]any{"max-time-per-entry": "soon"},
	} {
		c, err := config.Parse(with(t, "limits", limits))
		require.ErrorContains(t, err, "the config's "+says)
		assert.NotRegexp(t, "they are .*per-session", err, "a limit that is gone is offered")
		assert.False(t, c.Limits.Any(), "limits that are not all understood are none")
		assert.Equal(t, "ses-mnseaiv7-0a1b2c3d", c.SessionID, "the failure can be reported")
	}
}
