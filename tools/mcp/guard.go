package mcp

import (
	"net/url"

	"parley/tools"
	"parley/tools/untrusted"
)

// guard returns what holds back calls in untrusted turns (R-S12): those that have effects, and those by
// which a server that can pass it on would learn something private. Content that somebody else wrote
// must not be able to have either done.
func (v *supervisor) guard(readOnly bool) func(tools.Call) bool {
	switch {
	case !readOnly:
		return func(c tools.Call) bool { return c.Tainted }
	case v.server.isOpen():
		return leaks
	}
	return nil
}

// leaks reports whether the arguments of c, in an untrusted turn, may carry off what the model knows.
func leaks(c tools.Call) bool {
	if !c.Tainted {
		return false
	}
	if c.Known == nil {
		return true
	}
	return valueLeaks(c.Known(), c.Input, c.Descriptions())
}

func valueLeaks(known untrusted.Known, value any, common []string) bool {
	switch v := value.(type) {
	case string:
		u, err := url.Parse(v)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return known.WordsLeak(v, common)
		}
		return known.AddressesLeak(v)
	case []any:
		for _, item := range v {
			if valueLeaks(known, item, common) {
				return true
			}
		}
	case map[string]any:
		for name, item := range v {
			if valueLeaks(known, name, common) || valueLeaks(known, item, common) {
				return true
			}
		}
	}
	return false
}
