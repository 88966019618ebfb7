package book

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCSV(t *testing.T) {
	rows, total := sumOf(Entry, spending()...).Rows()
	var lines []string
	for _, g := range append(rows, total) {
		lines = append(lines, g.CSV(Entry))
	}
	assert.Equal(t, []string{
		`"entry","a","sha-a",0,1,0.05,,500,5,0,0,2,0,,`,
		`"entry","b","sha-b",0,1,0.03,,300,3,0,0,1,0,,`,
		`"entry","c","sha-c",0,1,0.05,,500,5,0,0,1,1,,`,
		`"outside",,,,0,0.02,0.02,200,2,0,0,1,0,,`,
		`"total",,,,3,0.15,0.02,1500,15,0,0,5,1,,`,
	}, lines)
	unpriced := cents(1)
	unpriced.Nanos, unpriced.Dollars, unpriced.Unpriced, unpriced.ClientNanos = 0, false, 1, 20_000_000
	rows, _ = sumOf(Day, entryOf("a", noon, "s", unpriced)).Rows()
	assert.Equal(t, `"day","2026-03-04",,,1,,,100,1,0,0,1,1,0.02,`, rows[0].CSV(Day), "no dollars are no 0")
}

func TestJSON(t *testing.T) {
	rows, total := sumOf(Entry, spending()...).Rows()
	for i, want := range []string{
		`{"by":"entry","id":"a","entry_id":"sha-a","start_offset":0,"entries":1,"cost_usd":0.05,"tokens":{"input":500,"output":5,"cache_read":0,"cache_write":0},"requests":2}`,
		`{"by":"entry","id":"b","entry_id":"sha-b","start_offset":0,"entries":1,"cost_usd":0.03,"tokens":{"input":300,"output":3,"cache_read":0,"cache_write":0},"requests":1}`,
		`{"by":"entry","id":"c","entry_id":"sha-c","start_offset":0,"entries":1,"cost_usd":0.05,"tokens":{"input":500,"output":5,"cache_read":0,"cache_write":0},"requests":1,"unpriced":1}`,
		`{"by":"entry","what":"outside","entries":0,"cost_usd":0.02,"tokens":{"input":200,"output":2,"cache_read":0,"cache_write":0},"requests":1,"outside_usd":0.02}`,
		`{"by":"entry","what":"total","entries":3,"cost_usd":0.15,"tokens":{"input":1500,"output":15,"cache_read":0,"cache_write":0},"requests":5,"unpriced":1,"outside_usd":0.02}`,
	} {
		assert.JSONEq(t, want, append(rows, total)[i].JSON(Entry))
	}
}

// FuzzCSV holds that no cell adds a column or a line, and that none is a formula.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"=1+1", "@x", "-2", "+3", "a\"b", "a\nb,c\r\n", "\t=1", " =1", "'=1", "\"=1", "＝1", "\xff=", "\x1b[2J", "|cmd", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := &Group{Kind: Named, Name: text, EntryID: text, Model: text}
		line := g.CSV(Entry)
		require.NotContains(t, line, "\n")
		require.True(t, utf8.ValidString(line))
		r := csv.NewReader(strings.NewReader(CSVHead + "\n" + line + "\n"))
		records, err := r.ReadAll() // it holds all lines to the number of columns
		require.NoError(t, err)
		require.Len(t, records, 2)
		for _, at := range []int{1, 2, 14} {
			shown := strings.TrimLeft(records[1][at], " ")
			assert.False(t, shown != "" && strings.ContainsAny(shown[:1], "=+-@|%\t"), "%q", shown)
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		got := []byte((&Group{Kind: Named, Name: text}).JSON(Session))
		var back struct {
			ID string `json:"session_id"`
		}
		require.NoError(t, json.Unmarshal(got, &back))
		assert.Equal(t, text, back.ID)
	})
}
