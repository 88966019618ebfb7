// Package flat reads and writes one JSON object member by member.
//
// The hook starts once per turn, decides, and ends: encoding/json would spend a
// good part of that on learning the types by reflection, each time anew. The
// shapes stay declared as tagged structs, and tests hold the two together.
package flat
