package cli_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1000": "1000", "1024": "1K", "512k": "512K", "4G": "4G", "4GiB": "4G", "1.5M": "1536K", "1T": "1T", "2m": "2M",
	} {
		var b cli.Bytes
		assert.NoError(t, b.Set(text), text)
		assert.Equal(t, want, b.String(), text)
	}
	for _, text := range []string{"", "G", "-1", "4 G", "many", "1e30", "NaN", "8E", "4GB"} {
		var b cli.Bytes
		assert.EqualError(t, b.Set(text), "it takes a number of bytes, such as 1048576, 512K, 100M or 4G", text)
	}
}
