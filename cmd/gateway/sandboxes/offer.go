package sandboxes

import (
	"context"

	"parley/tools"
	"parley/tools/sandbox"
)

// Offer offers the tools of a source while it is not known that no sandbox of runner holds (R-S16). Before
// the first probe they are offered: it takes a while, and nobody is to wait for it. runner may be nil.
func Offer(source tools.Source, runner *sandbox.Auto) tools.Source { return offer{source, runner} }

type offer struct {
	source tools.Source
	runner *sandbox.Auto
}

// Tools implements [tools.Source].
func (o offer) Tools(ctx context.Context, scope tools.Scope) ([]tools.Tool, error) {
	if o.runner != nil && o.runner.Missing() {
		return nil, nil // /status and parley doctor say so
	}
	return o.source.Tools(ctx, scope)
}
