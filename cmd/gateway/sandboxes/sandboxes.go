// Package sandboxes ties the drivers of sandboxes together.
package sandboxes

import (
	"log/slog"
	"os"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/docker"
	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/none"
	"parley/tools/sandbox/probe"
	"parley/tools/sandbox/proxy"
)

// A Config is what drivers are told.
type Config struct {
	Log    *slog.Logger
	Folder string        // where drivers keep what they need
	Image  func() string // of containers
	Owner  string        // says whose the containers are; no two runners at the same time have the same
	Hide   []string      // what no program may see: the data folder, the config
}

// New returns what runs programs in the strongest sandbox that holds on this machine, or in the one
// that its Use names. A new driver is a folder beside its peers and a line here.
func New(c Config) *sandbox.Auto {
	self, err := os.Executable()
	if err != nil {
		self = "" // then bwrap has no relay, and lets no program reach some hosts only
	}
	auto := sandbox.NewAuto(probe.Run,
		sandbox.Candidate{
			Name:   "bwrap",
			Runner: bwrap.New(bwrap.Config{Folder: c.Folder, Relay: self, Proxy: proxy.Config{Log: c.Log}}),
			Advice: bwrap.Advice,
		},
		sandbox.Candidate{Name: "landlock", Runner: landlock.New(), Advice: landlock.Advice},
		sandbox.Candidate{
			Name:      "docker",
			Runner:    &docker.Runner{Image: c.Image, Owner: c.Owner},
			Advice:    docker.Advice,
			OnRequest: true,
		},
		sandbox.Candidate{Name: "none", Runner: none.Runner{}, Bare: true},
	)
	auto.Hide(c.Hide...)
	return auto
}
