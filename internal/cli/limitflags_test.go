package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/money/price"
)

func TestLimitFlags(t *testing.T) {
	given := []string{
		"--max-cost-per-entry", "2.505", "--max-tokens-per-entry", "400k", "--max-time-per-entry", "30m",
		"--max-cost-per-session", "0", "--max-cost-per-day", "50", "--max-tokens-per-session", "0", "--max-tokens-per-day", "1.5M",
	}
	want := price.Plan{
		Entry: price.Limits{Nanos: 2_505_000_000, Tokens: 400_000, Time: 30 * time.Minute},
		Day:   price.Limits{Nanos: 50_000_000_000, Tokens: 1_500_000},
	}
	for range 2 { // the arguments mean the same
		var l price.Plan
		f := cli.NewFlags("test")
		cli.AddLimits(f, &l)
		require.NoError(t, f.Parse(given))
		assert.Equal(t, want, l)
		assert.True(t, l.Any())
		given = cli.LimitArguments(l)
	}
	assert.Empty(t, cli.LimitArguments(price.Plan{}))
}

// Limits of earlier releases name their replacement. In installed settings, 0 is no limit.
func TestLimitsThatAreGone(t *testing.T) {
	var runs cli.RunFlags
	for flag, says := range map[string]string{"--max-cost-per-session=5": "--max-cost-per-entry", "--max-tokens-per-session=5k": "--max-tokens-per-entry", "--max-cost-per-run=5": "heartbeat run status"} {
		f := cli.NewFlags("test")
		cli.AddLimits(f, new(price.Plan))
		runs.Add(f)
		require.ErrorContains(t, f.Parse([]string{flag}), "is no limit any more: limit each entry")
		require.ErrorContains(t, f.Parse([]string{flag}), says)
		require.NoError(t, f.Parse([]string{strings.Split(flag, "=")[0] + "=0"}))
	}
}

// A launcher of an earlier release hands its hooks every flag about runs, with the defaults of that time.
func TestRunFlagsOfAnEarlierRelease(t *testing.T) {
	var r cli.RunFlags
	f := cli.NewFlags("x")
	r.AddWays(f)
	require.NoError(t, f.Parse([]string{"--max-iterations=256", "--max-idle=10"}))
	require.NoError(t, f.Parse([]string{"--max-idle", "0"}))
	for _, flag := range []string{"--max-idle=5", "--max-idle=", "--min-iteration-seconds=15"} {
		require.ErrorContains(t, f.Parse([]string{flag}), "is no limit any more: --max-iterations bounds")
	}
	assert.NotContains(t, r.Arguments(), "--max-idle=10")
}

func TestLimitFlagsRefuse(t *testing.T) {
	for _, text := range []string{"-1", "NaN", "nan", "Inf", "1e400", "-0.5", "", " ", "2,50", "$2", "0x10", "two", "1e10"} {
		for _, name := range []string{"max-cost-per-entry", "max-cost-per-day"} {
			f := cli.NewFlags("test")
			cli.AddLimits(f, new(price.Plan))
			require.Error(t, f.Parse([]string{"--" + name + "=" + text}), "%s %q", name, text)
		}
	}
	for _, text := range []string{"-1", "NaN", "1e400", "", "400kk", "1.0001k", "9999999999999", "0k"} {
		f := cli.NewFlags("test")
		cli.AddLimits(f, new(price.Plan))
		require.Error(t, f.Parse([]string{"--max-tokens-per-entry=" + text}), "%q", text)
	}
	for _, text := range []string{"-1m", "NaN", "1e300", "", "soon", "11000d", "0s"} {
		f := cli.NewFlags("test")
		cli.AddLimits(f, new(price.Plan))
		require.Error(t, f.Parse([]string{"--max-time-per-entry=" + text}), "%q", text)
	}
	for _, flag := range []string{"--max-cost=0", "--max-tokens=0", "--max-time=0"} {
		f := cli.NewFlags("test")
		cli.AddEntryLimits(f, new(price.Limits), cli.EntryCost)
		require.ErrorContains(t, f.Parse([]string{flag}), "for no limit", flag)
	}
}
