package orchestrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate"
)

func TestPromise(t *testing.T) {
	for message, want := range map[string]string{
		"Done.\n<promise>abc</promise>":                  "abc",
		"<promise>\n a \t b\n</promise>":                 "a b",
		"<promise>a</promise> <promise>b</promise>":      "a",
		"<promise>a<promise>b</promise>":                 "a<promise>b",
		"</promise><promise>a</promise>":                 "a",
		"<promise>\ufeffa\u2028b\u0085c\u00a0</promise>": "a b\u0085c",
	} {
		got, ok := orchestrate.PromiseIn(message)
		assert.True(t, ok, "%q", message)
		assert.Equal(t, want, got, "%q", message)
	}
	for _, message := range []string{"", "abc", "<promise>abc", "abc</promise>", "<PROMISE>abc</PROMISE>"} {
		_, ok := orchestrate.PromiseIn(message)
		assert.False(t, ok, "%q", message)
	}
}

func TestKept(t *testing.T) {
	assert.True(t, orchestrate.PromiseKept("<promise> abc </promise>", "abc"))
	assert.False(t, orchestrate.PromiseKept("<promise>ab</promise>", "abc"))
	assert.False(t, orchestrate.PromiseKept("abc", "abc"))
	assert.False(t, orchestrate.PromiseKept("<promise></promise>", ""), "an empty proof is none")
	assert.False(t, orchestrate.PromiseKept("<promise>x</promise><promise>abc</promise>", "abc"), "only the first counts")
}

// FuzzPromise: a promise without white space is found in any text, unless another one begins
// before it.
func FuzzPromise(f *testing.F) {
	for _, m := range promises {
		f.Add(m, "abc")
	}
	f.Fuzz(func(t *testing.T, before, proof string) {
		value, ok := orchestrate.PromiseIn(before)
		assert.Equal(t, ok && value == proof && proof != "", orchestrate.PromiseKept(before, proof))
		if ok {
			again, ok := orchestrate.PromiseIn("<promise>" + value + "</promise>")
			assert.True(t, ok)
			assert.Equal(t, value, again, "what was trimmed stays trimmed")
		}
		if !strings.Contains(before, "<promise>") {
			assert.True(t, orchestrate.PromiseKept(before+"<promise>2d340be4</promise>"+proof, "2d340be4"))
		}
	})
}
