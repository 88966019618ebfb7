package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const header = `{"version":2,"width":12,"height":3}` + "\n"

// wellFormed fails where the picture is no XML, or has a script.
func wellFormed(t *testing.T, picture []byte) string {
	t.Helper()
	assert.NotContains(t, string(picture), "<script")
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return string(picture)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestPicture(t *testing.T) {
	svg, err := draw(strings.NewReader(header+`[0.1,"o","\u001b[?25l<a> & b"]
[0.5,"i","typed"]
[1.0,"o","\r\n\u001b[1;31mred\u001b[m plain"]
[1.5,"o","\u001b[7;1H<a> & b"]
[9.0,"o","\u001b[2J"]`), `a "title" <here>`)
	require.NoError(t, err)
	picture := wellFormed(t, svg)
	assert.Contains(t, picture, `<title>a &#34;title&#34; &lt;here&gt;</title>`)
	assert.Equal(t, 1, strings.Count(picture, `>&lt;a&gt; &amp; b</text>`), "what two rows show is drawn once")
	assert.Contains(t, picture, ` style="fill:#ffa198" font-weight="bold">red</text>`)
	assert.Contains(t, picture, `animation-duration:8.50s`, "7.5 s without a change count as 2, and the end stays for 5")
	assert.NotContains(t, picture, "typed")
}

// A long recording gets no more frames than it may, and its end is never left out.
func TestFramesAreBounded(t *testing.T) {
	var recording strings.Builder
	for i := range 3 * frames {
		fmt.Fprintf(&recording, `[%d.5,"o","\r%d"]`+"\n", i, i)
	}
	svg, err := draw(strings.NewReader(header+recording.String()), "")
	require.NoError(t, err)
	picture := wellFormed(t, svg)
	assert.Contains(t, picture, fmt.Sprintf(">%d</text>", 3*frames-1))
	assert.LessOrEqual(t, strings.Count(picture, "<g id=\"d"), frames)
}

func TestRecordingsThatAreRefused(t *testing.T) {
	for recording, why := range map[string]string{
		"":                                   "first line: EOF",
		`{"version":1}`:                      "version 1",
		`{"version":2,"width":0,"height":3}`: "0x3 cannot be drawn",
		header + `["x"]`:                     "event 1: ",
		header + `[1,"r","80x24"]`:           "record the session in one size",
	} {
		_, err := draw(strings.NewReader(recording), "")
		require.ErrorContains(t, err, why)
	}
}

// The README's pictures are some that this program made, small enough to load at once.
func TestPicturesOfTheREADME(t *testing.T) {
	for _, name := range []string{"session", "watch"} {
		svg, err := os.ReadFile("../../docs/" + name + ".svg")
		require.NoError(t, err)
		picture := wellFormed(t, svg)
		assert.Less(t, len(picture), 200_000)
		assert.Contains(t, picture, "@keyframes")
		assert.Contains(t, picture, "<title>heartbeat ")
	}
}
