package sandbox

import (
	"maps"
	"slices"
)

// Path is where programs are looked up in a sandbox.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BaseEnv returns the environment of every program in a sandbox (D-075, R-S17). Nothing of Parley's
// own environment is in it. Programs that would ask a person a question or page their output are
// told not to.
func BaseEnv() map[string]string {
	return map[string]string{
		"PATH":                Path,
		"LANG":                "C.UTF-8",
		"TERM":                "dumb",
		"PAGER":               "cat",
		"GIT_TERMINAL_PROMPT": "0",
		"DEBIAN_FRONTEND":     "noninteractive",
		"NODE_USE_ENV_PROXY":  "1", // or else Node ignores the proxy that HTTPS_PROXY names
	}
}

// Environ returns the environment of s as the operating system takes it, sorted: BaseEnv, Env, and
// those of more that are not in Env.
func (s Spec) Environ(more map[string]string) []string {
	all := BaseEnv()
	maps.Copy(all, more)
	maps.Copy(all, s.Env)
	return environ(all)
}

// environ returns variables as "NAME=value", sorted.
func environ(variables map[string]string) []string {
	list := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}
