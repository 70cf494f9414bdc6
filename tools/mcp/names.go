package mcp

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// maxName is how long the name of a tool may be for model providers.
const maxName = 64

// Category returns the category of the tools of a server, which rules and the policy use.
func Category(server string) string { return wrap("mcp_" + server) }

// CategoryAll is the category in the config that stands for those of all servers.
const CategoryAll = "mcp"

// WrapName returns the name under which models know something of a server (D-105): the name with what
// comes before it. Characters that providers refuse become "_", and what is too long ends with a
// digest of the whole.
func WrapName(server, name string) string { return wrap("mcp_" + server + "_" + name) }

func wrap(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(safe) <= maxName {
		return safe
	}
	sum := sha1.Sum([]byte(name)) // it tells names apart, and protects nothing
	tail := "_" + hex.EncodeToString(sum[:4])
	return safe[:maxName-len(tail)] + tail
}

// nameStarts returns how the names of the tools of each server begin.
func (s *Servers) nameStarts() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	starts := map[string]string{}
	for name := range s.used {
		starts[name] = Category(name) + "_"
	}
	return starts
}

// ownerOf returns the server that alone may have tools of that name: the one with the longest of starts that it
// begins with. Otherwise the server "a" could take the calls of "a_b" for itself (R-S22).
func ownerOf(tool string, starts map[string]string) (server string) {
	for name, start := range starts {
		if strings.HasPrefix(tool, start) && len(start) > len(starts[server]) {
			server = name
		}
	}
	return server
}
