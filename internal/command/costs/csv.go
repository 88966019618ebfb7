package costs

import (
	"strconv"
	"strings"

	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// CSVHead names the columns, which are the same for every grouping.
const CSVHead = "what,name,entry_id,start_offset,entries,cost_usd,outside_usd,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,requests,divided,open,model"

// CSV is the group as a line of a spreadsheet. A cell that is not known is empty.
func (g *Group) CSV(by By) string {
	what, start := string(by), ""
	if g.Kind != Named {
		what = string(g.Kind)
	} else if by == Entry {
		start = strconv.FormatInt(g.Start, 10)
	}
	model := g.Model
	if by != Entry {
		model = ""
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	t := g.Spent.Tokens
	return strings.Join([]string{
		cell(what), cell(g.Name), cell(g.EntryID), start, number(g.Entries), dollars(g.Spent), dollars(g.Outside),
		number(t.Input), number(t.Output), number(t.CacheRead), number(t.CacheWrite), number(g.Spent.Requests),
		strconv.FormatBool(g.Divided), strconv.FormatBool(g.Open), cell(model),
	}, ",")
}

func dollars(a price.Amount) string {
	if !a.Dollars {
		return ""
	}
	text, _ := price.Nanos(a.Nanos).MarshalJSON() // it never fails
	return string(text)
}

// formula are the characters that a spreadsheet takes for the beginning of a formula.
const formula = "=+-@|%＝＋－＠"

// cell is a text that some sender chose: on one line, always quoted, and with an
// apostrophe before what a spreadsheet would compute.
func cell(text string) string {
	if text == "" {
		return ""
	}
	text = words.Line(strings.ToValidUTF8(text, "\uFFFD"))
	if strings.ContainsAny(firstRune(strings.TrimLeft(text, " '\"")), formula) {
		text = "'" + text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func firstRune(text string) string {
	for at := range text {
		if at > 0 {
			return text[:at]
		}
	}
	return text
}
