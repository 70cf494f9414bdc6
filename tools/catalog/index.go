package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/tools"
)

const (
	// maxIndex is how long the index of names may be, in bytes: every request has it.
	maxIndex = 4000

	// maxServers is how many servers it may have.
	maxServers = 60
)

// indexOf returns the names of tools, in the order of out, so that it is the same in each request: first those
// of Parley's own, and then those of MCP servers.
func indexOf(out []*tools.Tool) string {
	by := map[string][]string{}
	for _, t := range out {
		server := serverOf(t)
		by[server] = append(by[server], shortName(t))
	}
	text := strings.Join(by[""], ", ")
	delete(by, "")
	if len(by) > 0 {
		text += serversNote + indexOfServers(by)
	}
	return strings.TrimPrefix(text, "\n")
}

// indexOfServers returns the names of all tools by server. If there are too many, the servers share the room:
// those that need less leave the rest to the others.
func indexOfServers(by map[string][]string) string {
	servers := slices.Sorted(maps.Keys(by))
	more := ""
	if n := len(servers) - maxServers; n > 0 {
		more = fmt.Sprintf("\n- and %d more servers", n)
		servers = servers[:maxServers]
	}
	rooms := shareRoom(servers, by)
	var b strings.Builder
	for _, server := range servers {
		b.WriteString("\n" + indexLine(server, by[server], rooms[server]))
	}
	return strings.TrimPrefix(b.String()+more, "\n")
}

// shareRoom returns how long the line of each server may be.
func shareRoom(servers []string, by map[string][]string) map[string]int {
	needs := map[string]int{}
	for _, server := range servers {
		needs[server] = len(fullLine(server, by[server])) + 1
	}
	smallFirst := slices.Clone(servers)
	slices.SortStableFunc(smallFirst, func(a, b string) int { return needs[a] - needs[b] })
	rooms := map[string]int{}
	left := maxIndex
	for i, server := range smallFirst {
		rooms[server] = min(needs[server], left/(len(smallFirst)-i))
		left -= rooms[server]
	}
	return rooms
}

// fullLine returns the line of a server with all names.
func fullLine(server string, names []string) string {
	return fmt.Sprintf("- %s (%d): %s", server, len(names), strings.Join(names, ", "))
}

// indexLine returns the line of a server: as many names as there is room for, with the end of the line.
func indexLine(server string, names []string, room int) string {
	if line := fullLine(server, names); len(line) < room {
		return line
	}
	line := fmt.Sprintf("- %s (%d)", server, len(names))
	separator := ": "
	for i, name := range names {
		more := fmt.Sprintf(", and %d more", len(names)-i)
		if len(line)+len(separator)+len(name)+len(more) >= room {
			if i > 0 {
				line += more
			}
			break
		}
		line += separator + name
		separator = ", "
	}
	return line
}
