package settings_test

import (
	"strings"
	"testing"

	"heartbeat/internal/claude/settings"
)

// stopInBackground is stopOnly with a background event and the same arguments.
func stopInBackground() settings.Wiring {
	w := stopOnly()
	w.Wakes = true
	return w
}

// background is the group that stopInBackground writes in a file of one line.
var background = strings.Replace(entry, `"timeout":600`, `"timeout":31536000,"asyncRewake":true`, 1)

func stop(groups ...string) string {
	return `{"hooks":{"Stop":[` + strings.Join(groups, ",") + `]}}`
}

func TestInstallInTheBackground(t *testing.T) {
	alike(t, `{"a":1,"hooks":{"Stop":[`+background+`]}}`, install(t, `{"a":1}`, stopInBackground()))

	w := stopInBackground()
	w.Events = []string{settings.SessionEnd, settings.Stop, settings.Notification}
	want := `{"hooks":{"SessionEnd":[` + entry + `],"Stop":[` + background + `],"Notification":[` + entry + `]}`
	alike(t, `{"a":1,`+want[1:]+`}`, install(t, `{"a":1,"hooks":{}}`, w), "only the events that are named")
}

// Both wirings turn into each other in place, and a person's members beside ours stay.
func TestInstallChangesWhoIsWaitedFor(t *testing.T) {
	with := func(members string) string {
		return `{"hooks":{"Stop":[{"matcher":"","hooks":[{` + members + `}]}]}}`
	}
	const (
		ours  = `"type":"command","command":"/abs/heartbeat-stop","args":["--inbox","/x/inbox.jsonl"],`
		short = ours + `"timeout":600`
		long  = ours + `"timeout":31536000,"asyncRewake":true`
	)
	tests := []struct{ name, have, waited, background string }{
		{"as written", short, short, long},
		{"as written in the background", long, short, long},
		{"async of a person", short + `,"async":true`, short, long},
		{"both", `"async": true,` + long, short, long},
		{"both, the other way round", long + ` , "async":true `, short + " ", long + " "},
		{"said to be off", short + `,"asyncRewake":false,"async":false`, short, long},
		{"of another type", short + `,"asyncRewake":"yes"`, short, long},
		{"twice", `"asyncRewake":true,` + long, short, `"asyncRewake":true,` + long},
		{"first", `"asyncRewake":true,` + short, short, `"asyncRewake":true,` + ours + `"timeout":31536000`},
		{"amid a person's", short + `,"statusMessage":"x","asyncRewake": true,"once":true`, short + `,"statusMessage":"x","once":true`,
			ours + `"timeout":31536000,"statusMessage":"x","asyncRewake": true,"once":true`},
		{"comments", short + `, /* a */ "async": true /* b */, // c` + "\n\"x\":1", short + `, /* a */  /* b */ // c` + "\n\"x\":1",
			ours + `"timeout":31536000, /* a */  /* b */ // c` + "\n\"x\":1,\n\"asyncRewake\":true"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			alike(t, with(test.waited), install(t, with(test.have), stopOnly()))
			alike(t, with(test.background), install(t, with(test.have), stopInBackground()))
			alike(t, "{}", uninstall(t, with(test.have), stopOnly()))
		})
	}
}

func TestInstallKeepsOneOfBothWirings(t *testing.T) {
	flagged := strings.Replace(background, `"/x/inbox.jsonl"`, `"/x/inbox.jsonl","--rewake"`, 1)
	inOneGroup := strings.Replace(entry, `}]}`, `},{"type":"command","command":"/old/heartbeat-stop","args":["--inbox=/x/inbox.jsonl"],"asyncRewake":true}]}`, 1)
	for _, file := range []string{stop(entry, flagged), stop(flagged, entry), stop(inOneGroup), stop(background, entry, flagged)} {
		alike(t, stop(entry), install(t, file, stopOnly()), file)
		alike(t, stop(background), install(t, file, stopInBackground()), file)
		alike(t, "{}", uninstall(t, file, stopOnly()), file)
	}
}

// A hook of another inbox may run in the background or not.
func TestInstallLeavesTheBackgroundOfOthersAlone(t *testing.T) {
	other := strings.Replace(background, inbox, "/y/other.jsonl", 1)
	foreign := `{"hooks":[{"type":"command","command":"say done","async":true}]}`
	alike(t, stop(other, foreign, entry), install(t, stop(other, foreign, background), stopOnly()))
	alike(t, stop(other, foreign, background), install(t, stop(other, foreign, entry), stopInBackground()))
	alike(t, stop(other, foreign), uninstall(t, stop(other, foreign, background), stopOnly()))
}
