package python

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/tools/sandbox"
)

const (
	fontFolder = ".matplotlib" // of a scratch: where matplotlib keeps its list of fonts
	fontFiles  = fontFolder + "/fontlist-*.json"
	fontLimit  = 5 * time.Minute // to make the list
	fontRetry  = time.Hour       // after which it is tried again
)

// fontProgram has matplotlib make its list. What charts need is loaded besides, so that the machine has it
// in memory when the time of a level begins.
const fontProgram = "import matplotlib.font_manager, matplotlib.backends.backend_agg, matplotlib.pyplot"

// A fontList is matplotlib's list of the fonts of this machine. With an empty folder matplotlib makes it
// anew, which takes longer than a level may where the machine is small or has many fonts. So it is made
// once, without the model's code and in a sandbox of its own, and each run that may draw is given a copy:
// what a run does to its copy reaches no other run (R-S20).
type fontList struct {
	log    *slog.Logger             // may be nil
	made   atomic.Pointer[fontFile] // nil: it is not made yet
	place  chan struct{}            // of the one who may look at what follows, and make the list
	failed time.Time                // when it could not be made; zero if that was never so
}

// A fontFile is the file that matplotlib keeps its list in. It is never changed.
type fontFile struct {
	name string // in a scratch: it tells the version of its format
	data []byte
}

func newFontList(log *slog.Logger) *fontList {
	return &fontList{log: log, place: make(chan struct{}, 1)}
}

// prepare has the list made unless there is one. Without a list runs go on, since matplotlib can make one,
// and the operator is told once. The error is that of ctx.
func (f *fontList) prepare(ctx context.Context, produce func(context.Context) (*fontFile, error)) error {
	if f.made.Load() != nil {
		return nil
	}
	select {
	case f.place <- struct{}{}:
		defer func() { <-f.place }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.made.Load() != nil || !f.failed.IsZero() && time.Since(f.failed) < fontRetry {
		return nil
	}
	file, err := produce(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		f.made.Store(file)
		return nil
	}
	if f.log != nil && f.failed.IsZero() {
		f.log.Warn("matplotlib's list of fonts was not made, so that charts take longer", "err", err)
	}
	f.failed = time.Now()
	return nil
}

// give writes the list into a folder, if there is one.
func (f *fontList) give(folder scratch) error {
	file := f.made.Load()
	if file == nil {
		return nil
	}
	if err := folder.root.Mkdir(fontFolder, 0o700); err != nil {
		return fmt.Errorf("write the list of fonts: %w", err)
	}
	if err := folder.root.WriteFile(file.name, file.data, 0o600); err != nil {
		return fmt.Errorf("write the list of fonts: %w", err)
	}
	return nil
}

// draws reports whether code may load matplotlib, itself or by a library that plots with it.
func (p *Interpreter) draws(level Level, code string) bool {
	if level != Lenient && p.extraModules(level) == "" {
		return false
	}
	names := []string{"matplotlib", "pylab", "seaborn", ".plot"}
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(code, name) })
}

// makeFonts has matplotlib make its list.
func (p *Interpreter) makeFonts(ctx context.Context) (*fontFile, error) {
	path, err := p.find()
	if err != nil {
		return nil, err
	}
	folder, err := makeScratch()
	if err != nil {
		return nil, err
	}
	defer folder.remove()
	s := folder.spec([]string{path, "-I", "-B", "-X", "utf8", "-c", fontProgram}, fontLimit)
	stderr := &sandbox.Ends{Max: 1000}
	s.Stderr = stderr
	o, err := p.cfg.Sandbox.Run(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case o.End != sandbox.Exited:
		return nil, fmt.Errorf("the program ended: %s", o.End)
	case o.Exit != 0:
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, errors.New(cmp.Or(lines[len(lines)-1], fmt.Sprintf("exit code %d", o.Exit)))
	}
	found, err := fs.Glob(listing{folder.root}, fontFiles)
	if err != nil || len(found) == 0 {
		return nil, cmp.Or(err, errors.New("it wrote none"))
	}
	data, err := folder.read(found[0], maxFile)
	if err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s is not JSON", found[0])
	}
	return &fontFile{found[0], data}, nil
}
