package meter_test

import (
	"fmt"
	"testing"
)

func BenchmarkAdvance(b *testing.B) {
	r := newRig(b)
	r.advance(r.started("a", "0"))
	turn := func(i int) {
		r.write(feedback("more"), r.answer(10, 1))
		if _, err := r.advanceOnly(r.said("a", fmt.Sprint(i+1), 10, 1)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 150 {
		turn(i)
	}
	b.ResetTimer()
	for i := range b.N {
		turn(150 + i)
	}
}
