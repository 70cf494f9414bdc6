package shell

import (
	"context"
	"strings"

	"parley/tools"
	"parley/tools/sandbox"
)

// Visit prepares the workspace of c for a program that is no command, such as a custom tool. The program
// sees what a command sees that names the folder work, and changes files only with mayWrite. What it
// writes counts as what a command writes (R-S12); mayReach says that it has the network.
func (s *Shell) Visit(ctx context.Context, c tools.Call, mayWrite, mayReach bool) (sandbox.Visit, error) {
	p, err := placeOf(c)
	if err != nil {
		return sandbox.Visit{}, err
	}
	var read tools.Result
	executor{shell: s}.taintBy(c, []string{strings.TrimPrefix(p.work, p.whole+"/")}, &p, &read)
	v := sandbox.Visit{Folders: p.folders, Work: p.work, Sources: read.Sources, End: func() {}}
	if !mayWrite {
		for i, f := range v.Folders {
			v.Folders[i].Access = min(f.Access, sandbox.ReadOnly)
		}
		return v, nil
	}
	var writes *writing
	if c.Tainted || read.Tainted || mayReach {
		if writes, err = s.beginWriting(ctx, c); err != nil {
			return sandbox.Visit{}, err
		}
	}
	v.End = func() {
		writes.end()
		s.noteStored(c)
	}
	return v, nil
}
