package book

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

var two = price.Price{Amount: price.Amount{Nanos: 2_500_000_000, Dollars: true, Tokens: price.Tokens{Input: 1, Output: 2}, Requests: 3}, Model: "m"}

func TestLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"entry_id":"a","reply":"x","cost_usd":1,"cost_open":true}`: `{"entry_id":"a","reply":"x","cost_usd":2.5,"tokens":{"input":1,"output":2,"cache_read":0,"cache_write":0},"requests":3,"model":"m"}`,
		`{"entry_id":"a","tokens":"odd","unknown":null}`:             `{"entry_id":"a","unknown":null,"cost_usd":2.5,"tokens":{"input":1,"output":2,"cache_read":0,"cache_write":0},"requests":3,"model":"m"}`,
		`no JSON`: `no JSON`,
	} {
		assert.Equal(t, want, string(withPrice([]byte(line), two, nil)))
	}
}

func TestModelsOfALine(t *testing.T) {
	all := price.ByModel{Model: "a", Amount: two.Amount}.In([]price.ByModel{{Model: "b", Amount: two.Amount}, {Model: "a", Amount: two.Amount}})
	assert.Equal(t, `{"x":1,"cost_usd":2.5,"tokens":{"input":1,"output":2,"cache_read":0,"cache_write":0},"requests":3,"model":"m","models":[`+
		`{"cost_usd":5,"tokens":{"input":2,"output":4,"cache_read":0,"cache_write":0},"requests":6,"model":"a"},`+
		`{"cost_usd":2.5,"tokens":{"input":1,"output":2,"cache_read":0,"cache_write":0},"requests":3,"model":"b"}]}`,
		string(withPrice([]byte(`{"x":1}`), two, all)))
}

// FuzzLine holds that a line keeps all that is no price, and stays one object.
func FuzzLine(f *testing.F) {
	f.Add(`{"entry_id":"a","reply":"x","cost_usd":1,"a\u0062":[1, {"x":"\\"}],"tokens":{}}`)
	f.Add(`{"cost_usd":1e999}`)
	f.Fuzz(func(t *testing.T, line string) {
		var before, after map[string]json.RawMessage
		got := withPrice([]byte(line), two, nil)
		if !utf8.ValidString(line) || json.Unmarshal([]byte(line), &before) != nil || before == nil {
			return
		}
		require.NoError(t, json.Unmarshal(got, &after), "%s", got)
		for _, name := range members {
			delete(before, name)
		}
		assert.JSONEq(t, "2.5", string(after["cost_usd"]))
		for name, value := range before {
			require.Contains(t, after, name)
			var want, is bytes.Buffer
			require.NoError(t, json.Compact(&want, value))
			require.NoError(t, json.Compact(&is, after[name]))
			assert.Equal(t, want.String(), is.String())
		}
	})
}
