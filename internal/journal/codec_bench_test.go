package journal

import "testing"

// What a turn spends on its record: it reads one and writes two.
func BenchmarkRecordEncode(b *testing.B) {
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		_ = r.encode()
	}
}

func BenchmarkRecordDecode(b *testing.B) {
	body := full().encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRecord(body, false); err != nil {
			b.Fatal(err)
		}
	}
}
