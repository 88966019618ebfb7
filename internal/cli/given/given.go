// Package given reads what a person gives as text.
package given

import (
	"bufio"
	"bytes"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// Text is the input in UTF-8, without a byte order mark. Input that begins with the mark of
// UTF-16 or UTF-32, as of Windows' editors and shells, is converted; what is no such thing in
// it becomes U+FFFD. Input without a mark stays as it is.
func Text(in io.Reader) io.Reader {
	from := bufio.NewReader(in)
	first, _ := from.Peek(4) // what keeps it from being read is found when it is
	switch string(first) {
	case "\xff\xfe\x00\x00", "\x00\x00\xfe\xff": // to BOMOverride the first one is UTF-16
		return utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM).NewDecoder().Reader(from)
	}
	return transform.NewReader(from, unicode.BOMOverride(encoding.Nop.NewDecoder()))
}

// TextOf is [Text] for input that was read.
func TextOf(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff", "\xef\xbb\xbf"} {
		if bytes.HasPrefix(b, []byte(mark)) {
			return io.ReadAll(Text(bytes.NewReader(b)))
		}
	}
	return b, nil // which may be long, and needs no copy
}
