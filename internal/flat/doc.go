// Package flat reads and writes one JSON object member by member.
//
// The hook starts once per turn, decides and ends. encoding/json would spend a good
// part of that time on reflection, which every start repeats. The records are still
// declared as tagged structs, and tests check that both agree.
package flat
