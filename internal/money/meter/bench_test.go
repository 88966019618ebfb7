package meter_test

import "testing"

func BenchmarkAdvance(b *testing.B) {
	r := newRig(b)
	turn := func() {
		r.write(feedback("more"), r.answer(10, 1))
		if _, err := r.advanceOnly(r.silent()); err != nil {
			b.Fatal(err)
		}
	}
	for range 150 {
		turn()
	}
	b.ResetTimer()
	for range b.N {
		turn()
	}
}
