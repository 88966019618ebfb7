package cli

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

// TestListsAreThoseOfPflag compares the values with pflag's own.
func TestListsAreThoseOfPflag(t *testing.T) {
	for _, given := range [][]string{nil, {""}, {"a"}, {"a,b"}, {"a", "b,c"}, {`"a,b",c`}, {`"a`}, {"a b", `c"d`}} {
		var theirs, ours []string
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.StringArrayVar(&theirs, "array", nil, "")
		assertSame(t, f.Lookup("array").Value, arrayList(&ours), given)
		assert.Equal(t, theirs, ours)

		theirs, ours = nil, nil
		f.StringSliceVar(&theirs, "slice", nil, "")
		assertSame(t, f.Lookup("slice").Value, commaList(&ours), given)
		assert.Equal(t, theirs, ours)
	}
}

func assertSame(t *testing.T, want, got pflag.Value, given []string) {
	t.Helper()
	assert.Equal(t, want.Type(), got.Type())
	assert.Equal(t, want.String(), got.String())
	for _, text := range given {
		wantErr, err := want.Set(text), got.Set(text)
		assert.Equal(t, wantErr, err, "%q", text)
		assert.Equal(t, want.String(), got.String(), "%q", text)
	}
	wants, gots := want.(pflag.SliceValue), got.(pflag.SliceValue)
	assert.Equal(t, wants.GetSlice(), gots.GetSlice(), "%q", given)
	assert.Equal(t, wants.Append("x"), gots.Append("x"))
	assert.Equal(t, wants.Replace([]string{"y", "z"}), gots.Replace([]string{"y", "z"}))
	assert.Equal(t, wants.GetSlice(), gots.GetSlice())
}
