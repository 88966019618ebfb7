package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const header = `{"version":2,"width":12,"height":3}` + "\n"

// drawn is the picture of a recording.
func drawn(t *testing.T, recording string) string {
	t.Helper()
	c, err := read(strings.NewReader(recording))
	require.NoError(t, err)
	var out bytes.Buffer
	c.film(2*time.Second, 400).write(&out, `a "title" <here>`)
	return out.String()
}

// wellFormed fails where the text is no XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestPicture(t *testing.T) {
	picture := drawn(t, header+
		`[0.1,"o","<a> & b"]`+"\n"+
		`[0.5,"i","typed"]`+"\n"+
		`[1.0,"o","\r\n\u001b[1;31mred\u001b[m plain"]`+"\n"+
		`[9.0,"o","\u001b[2J"]`+"\n")
	wellFormed(t, picture)
	assert.Contains(t, picture, `<title>a &#34;title&#34; &lt;here&gt;</title>`)
	assert.Contains(t, picture, `>&lt;a&gt; &amp; b</text>`)
	assert.Contains(t, picture, `class="c0">red</text>`)
	assert.Contains(t, picture, `.c0{fill:#ffa198;font-weight:bold;}`)
	assert.Contains(t, picture, `animation-duration:8.00s`, "8 s without a change count as 2, and the end stays for 5")
	assert.NotContains(t, picture, "typed")
	assert.NotContains(t, picture, "<script")
	assert.Equal(t, picture, drawn(t, header+
		`[0.1,"o","<a> & b"]`+"\n"+
		`[1.0,"o","\r\n\u001b[1;31mred\u001b[m plain"]`+"\n"+
		`[9.0,"o","\u001b[2J"]`+"\n"), "the same recording gives the same picture")
}

// A row that was on the screen before, here or in another row, is drawn once.
func TestPictureDrawsOnce(t *testing.T) {
	var recording strings.Builder
	recording.WriteString(header)
	for i := range 20 {
		fmt.Fprintf(&recording, `[%d,"o","line %d\r\n"]`+"\n", i, i)
	}
	picture := drawn(t, recording.String())
	wellFormed(t, picture)
	for i := range 20 {
		assert.Equal(t, 1, strings.Count(picture, fmt.Sprintf(">line %d</text>", i)))
	}
}

func TestFilmIsBounded(t *testing.T) {
	var recording strings.Builder
	recording.WriteString(header)
	for i := range 2000 {
		fmt.Fprintf(&recording, `[%d.5,"o","\r%d"]`+"\n", i, i)
	}
	c, err := read(strings.NewReader(recording.String()))
	require.NoError(t, err)
	f := c.film(time.Second, 50)
	assert.LessOrEqual(t, len(f.frames), 50)
	assert.Equal(t, '1', f.frames[len(f.frames)-1].cells[0][0].Char)
	assert.Equal(t, '9', f.frames[len(f.frames)-1].cells[0][3].Char, "the end is never left out")
}

func TestRecordingsThatAreRefused(t *testing.T) {
	for recording, why := range map[string]string{
		"":                                   "it is empty",
		"{":                                  "line 1: ",
		`{"version":1}`:                      "version 1",
		`{"version":2,"width":0,"height":3}`: "0x3 cannot be drawn",
		`{"version":2,"width":9999,"height":9999}`: "9999x9999 cannot be drawn",
		header + `["x"]`:           "line 2: ",
		header + `[1,"r","80x24"]`: "record the session in one size",
	} {
		_, err := read(strings.NewReader(recording))
		require.ErrorContains(t, err, why)
	}
}

// The README's pictures are some that this program made, small enough to load at once.
func TestPicturesOfTheREADME(t *testing.T) {
	for _, name := range []string{"session", "watch"} {
		picture, err := os.ReadFile("../../docs/" + name + ".svg")
		require.NoError(t, err)
		wellFormed(t, string(picture))
		assert.Less(t, len(picture), 200_000)
		assert.Contains(t, string(picture), "@keyframes")
		assert.Contains(t, string(picture), "<title>heartbeat ")
		assert.NotContains(t, string(picture), "<script")
	}
}
