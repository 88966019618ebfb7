package meter

// ParsePrices is what a fuzzer feeds.
var ParsePrices = parsePrices
