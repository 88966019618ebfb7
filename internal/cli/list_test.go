package cli

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

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
