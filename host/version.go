package host

import (
	"cmp"
	"runtime/debug"
)

// Version says which build of the program this is, and with which Go it was made.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(b.Main.Version, "(devel)") + " " + b.GoVersion
}
