package proxy

import (
	"slices"
	"strings"
)

const loopback = "127.0.0.1"

// Environment is the client's environment, as NAME=value entries of which the last one
// of a name counts, changed so that the client reaches the proxy: with HTTP_PROXY set it
// would ask that for the tools, which cannot know this machine's loopback.
func Environment(env []string) []string {
	last := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		last[name] = value
	}
	if !slices.ContainsFunc([]string{"http_proxy", "https_proxy", "all_proxy"}, func(name string) bool {
		return last[name] != "" || last[strings.ToUpper(name)] != ""
	}) {
		return env
	}
	env = slices.Clone(env) // the caller's stays as it is
	// Of the two spellings only those in use are changed, since one hides the other.
	both := []string{"NO_PROXY", "no_proxy"}
	used := slices.DeleteFunc(slices.Clone(both), func(name string) bool { return last[name] == "" })
	if len(used) == 0 {
		used = both
	}
	for _, name := range used {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		env = append(env, name+"="+exempt(last[name]))
	}
	return env
}

// exempt is a list of hosts with the loopback address in it.
func exempt(hosts string) string {
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host == loopback || host == "*" {
			return hosts
		}
	}
	if strings.TrimSpace(hosts) == "" {
		return loopback
	}
	return hosts + "," + loopback
}
