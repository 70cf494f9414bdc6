package python

import (
	"strings"
	"time"
)

// rules are those of a level.
type rules struct {
	timeout time.Duration
	modules string // that code may import, separated by spaces
}

// levelRules returns the rules of each level. Its built-in functions are in run.py.
func levelRules() map[Level]rules {
	return map[Level]rules{
		Lenient:  {timeout: 30 * time.Second},
		Standard: {timeout: 10 * time.Second, modules: standardModules},
		Strict:   {timeout: 5 * time.Second, modules: strictModules},
	}
}

// The modules of the levels. Python 3.13 has no uu any more.
const (
	standardModules = "json csv re typing collections itertools functools operator heapq bisect array copy pprint " +
		"enum math cmath statistics random fractions decimal numbers datetime time calendar string textwrap " +
		"unicodedata difflib base64 binascii quopri uu html xml.etree.ElementTree dataclasses hashlib hmac abc " +
		"contextlib warnings logging"
	strictModules = "collections itertools functools operator array copy enum math cmath numbers fractions decimal " +
		"random statistics string textwrap unicodedata typing dataclasses abc contextlib"
)

// extraModules returns the modules that code of a level may import besides.
func (p *Interpreter) extraModules(level Level) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.extra[level], " ")
}
