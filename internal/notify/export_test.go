package notify

// Help is what a helper's process does.
var Help = help
