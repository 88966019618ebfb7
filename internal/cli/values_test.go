package cli

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1000": "1000", "1024": "1K", "512k": "512K", "4G": "4G", "4GiB": "4G", "1.5M": "1536K", "1T": "1T", "2m": "2M",
	} {
		var b Bytes
		assert.NoError(t, b.Set(text), text)
		assert.Equal(t, want, b.String(), text)
	}
	for _, text := range []string{"", "G", "-1", "4 G", "many", "1e30", "NaN", "8E", "4GB"} {
		var b Bytes
		assert.EqualError(t, b.Set(text), "it takes a number of bytes, such as 1048576, 512K, 100M or 4G", text)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"300": 5 * time.Minute, "0.5": time.Second / 2, "0": 0, "1e2": 100 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute,
		"30d": 720 * time.Hour, "0.5d": 12 * time.Hour, "1d12h": 36 * time.Hour, "106751d": 106751 * 24 * time.Hour,
	} {
		var s, again Span
		require.NoError(t, s.Set(text), text)
		assert.Equal(t, want, time.Duration(s), text)
		require.NoError(t, again.Set(s.String()))
		assert.Equal(t, s, again, text)
	}
	for _, text := range []string{
		"", "d", "-1", "-1d", "-5m", "1d-2h", "day", "NaN", "NaNd", "+Inf", "Infd", "1e300", "1e300d",
		"106752d", "106751d23h59m", "1d1d", "12hd", "5 m",
	} {
		s := Span(time.Second)
		assert.EqualError(t, s.Set(text), "it takes seconds or a duration, such as 300, 0.5, 5m or 30d", text)
		assert.Equal(t, Span(time.Second), s, "%q left it alone", text)
	}
}

// TestListsAreThoseOfPflag compares the values with pflag's own.
func TestListsAreThoseOfPflag(t *testing.T) {
	for _, given := range [][]string{nil, {""}, {"a"}, {"a,b"}, {"a", "b,c"}} {
		var theirs, ours []string
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.StringArrayVar(&theirs, "array", nil, "")
		assertSame(t, f.Lookup("array").Value, list{to: &ours}, given)

		theirs, ours = nil, nil
		f.StringSliceVar(&theirs, "slice", nil, "")
		assertSame(t, f.Lookup("slice").Value, list{&ours, true}, given)
	}
}

func assertSame(t *testing.T, want, got pflag.Value, given []string) {
	t.Helper()
	for _, text := range given {
		assert.NoError(t, want.Set(text))
		assert.NoError(t, got.Set(text))
	}
	wants, gots := want.(pflag.SliceValue), got.(pflag.SliceValue)
	assert.ElementsMatch(t, wants.GetSlice(), gots.GetSlice(), "%q", given)
	assert.NoError(t, gots.Append("x"))
	assert.Equal(t, "x", gots.GetSlice()[len(gots.GetSlice())-1])
	assert.NoError(t, gots.Replace([]string{"y", "z"}))
	assert.Equal(t, "[y,z]", got.String())
}
