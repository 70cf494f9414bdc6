package imports

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley/scheduler"
	"parley/store"
	"parley/store/mem"
	"parley/workspace"
)

// A Target is the Parley that gets what is imported.
type Target struct {
	DataDir   string
	Workspace string
	Config    string // the path of config.json
	// NewConfig is the config.json that onboard writes: one that is the same was edited by nobody.
	NewConfig []byte
	// Check returns what is wrong with the text of a config. The variables that it names need not be set.
	Check func(text []byte) error
	// Open opens the store, which no gateway may have open, until done is called.
	Open        func(ctx context.Context) (s store.Store, done func() error, err error)
	Zone        *time.Location
	MinInterval time.Duration // of jobs
	Now         func() time.Time

	step func() // for tests: called after each thing that a crash may leave done
}

// A Plan says what an import does, and has what it needs for that.
type Plan struct {
	System  string     `json:"system"`
	Path    string     `json:"path"`
	DataDir string     `json:"dataDir"`
	Done    bool       `json:"done"`
	Items   []Item     `json:"items"`
	Env     []Variable `json:"env,omitempty"` // to be set by the owner

	title      string
	files      []placed
	jobs       []Job
	config     []byte // nil: none to be written
	configName string // its path
	configSum  string
	settings   Action // what becomes of what stands in the config; "": as the notes say
}

// A placed file is one that is written.
type placed struct {
	File
	as       string // its name in the other order of things: what the receipt knows it by
	replaces []byte // what it takes the place of: a first file of Parley that nobody edited; nil: nothing
}

// Compare says what an import of found into t would do. It changes nothing.
func Compare(ctx context.Context, found *Installation, t Target) (*Plan, error) {
	p := &Plan{System: found.System, Path: found.Path, DataDir: t.DataDir, title: found.Title, Env: found.Settings.Env}
	before, err := readReceipts(t.DataDir)
	if err != nil {
		return nil, err
	}
	done := before[found.System]
	if err := p.addFiles(found, t, done); err != nil {
		return nil, err
	}
	if err := p.addJobs(ctx, found, t, done); err != nil {
		return nil, err
	}
	if err := p.addConfig(found, t, done); err != nil {
		return nil, err
	}
	for _, note := range found.Notes {
		if note.Action == Taken || note.Action == Changed { // it stands in the config, and goes where that goes
			note.Action = cmp.Or(p.settings, note.Action)
			if p.isBeside() {
				note.To = filepath.Base(p.configName) + ": " + note.To
			}
		}
		p.Items = append(p.Items, note)
	}
	order := []Action{Taken, Changed, Conflict, There, Left}
	slices.SortStableFunc(p.Items, func(a, b Item) int {
		return slices.Index(order, a.Action) - slices.Index(order, b.Action)
	})
	return p, nil
}

// Nothing reports whether there is nothing to do.
func (p *Plan) Nothing() bool { return len(p.files)+len(p.jobs) == 0 && p.config == nil }

// isBeside reports whether the config is written beside one that stays.
func (p *Plan) isBeside() bool { return p.config != nil && p.settings == Conflict }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (p *Plan) add(a Action, what, from, to, why string) {
	p.Items = append(p.Items, Item{a, what, from, to, why})
}

// addFiles says where the files go.
func (p *Plan) addFiles(found *Installation, t Target, done receipt) error {
	var root *os.Root
	if _, err := os.Lstat(t.Workspace); !errors.Is(err, fs.ErrNotExist) {
		if root, err = os.OpenRoot(t.Workspace); err != nil {
			return fmt.Errorf("look at the workspace: %w", err)
		}
		defer root.Close()
	}
	for _, f := range found.Files {
		what := "file " + line(f.Name)
		if done.Files[f.Name] == digest(f.Data) {
			p.add(There, what, f.From, "", "taken before")
			continue
		}
		to := placed{File: f, as: f.Name}
		state, first := lookAt(root, f.Name, f.Data)
		why := f.Change
		action := Taken
		if f.Change != "" {
			action = Changed
		}
		if state == other {
			to.Name = "imported/" + found.System + "/" + f.Name
			action = Conflict
			why = f.Name + " is another here, and stays: compare the two"
			state, _ = lookAt(root, to.Name, f.Data)
		}
		switch state {
		case same:
			p.add(There, what, f.From, "", "the same is there")
			continue
		case other:
			p.add(Conflict, what, f.From, "", "another is there, and stays")
			continue
		case unedited:
			to.replaces = first
		}
		p.files = append(p.files, to)
		p.add(action, what, f.From, to.Name, why)
	}
	return nil
}

// The states of a place for a file.
const (
	free     = iota
	same     // the file is there
	unedited // Parley's first file is there, which nobody edited
	other
)

// lookAt returns what is at name below root, which is nil if there is nothing at all.
func lookAt(root *os.Root, name string, data []byte) (state int, first []byte) {
	if root == nil {
		return free, nil
	}
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return free, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return other, nil
	}
	there, err := root.ReadFile(name)
	switch {
	case err != nil:
		return other, nil
	case bytes.Equal(there, data):
		return same, nil
	case len(there) > 0 && string(there) == workspace.First(name):
		return unedited, there
	}
	return other, nil
}

// addJobs tries the jobs out on a scheduler of its own, so that the report says what the real one would.
func (p *Plan) addJobs(ctx context.Context, found *Installation, t Target, done receipt) error {
	s := newScheduler(t, mem.New())
	for _, j := range found.Jobs {
		what := "job " + line(j.Name)
		if done.Jobs[j.ID] {
			p.add(There, what, j.From, "", "taken before")
			continue
		}
		added, err := s.Add(ctx, j.Job)
		if err != nil {
			p.add(Left, what, j.From, "", line(err.Error()))
			continue
		}
		action := Taken
		if j.Change != "" {
			action = Changed
		}
		state := added.Schedule.String()
		if added.Off {
			state += ", switched off"
		}
		p.jobs = append(p.jobs, j)
		p.add(action, what, j.From, string(added.At.Session()), joinWhy(state, j.Change))
	}
	return nil
}

func joinWhy(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}

func newScheduler(t Target, s store.Store) *scheduler.Scheduler {
	none := func() int { return 0 } // of jobs that owners bring there may be any number
	c := scheduler.Config{Store: s, Zone: t.Zone, MinInterval: t.MinInterval, MaxJobs: none, Now: t.Now}
	return scheduler.New(c)
}

// addConfig says where the config goes.
func (p *Plan) addConfig(found *Installation, t Target, done receipt) error {
	if found.Settings.Empty() {
		return nil
	}
	text, err := found.Settings.JSON(found.Title)
	if err != nil {
		return err
	}
	p.configSum = digest(text)
	beside := filepath.Join(filepath.Dir(t.Config), "config."+found.System+".json")
	merge := "Parley does not read " + filepath.Base(beside) + ": copy by hand what you want of it into " + t.Config
	draft, draftErr := os.ReadFile(beside)
	if done.Config == p.configSum {
		p.settings = There
		if bytes.Equal(draft, text) {
			p.add(There, "config", "", beside, "written before. "+merge)
			return nil
		}
		p.add(There, "config", "", "", "taken before")
		return nil
	}
	if err := t.Check(text); err != nil {
		p.settings = Left
		p.add(Left, "config", "", "", "what was made of it cannot be used: "+line(err.Error()))
		return nil
	}
	there, err := os.ReadFile(t.Config)
	switch {
	case errors.Is(err, fs.ErrNotExist), len(there) > 0 && bytes.Equal(there, t.NewConfig):
		p.add(Changed, "config", "", t.Config, "as Parley writes it")
		p.configName = t.Config
	case err != nil:
		return fmt.Errorf("look at the config: %w", err)
	case bytes.Equal(there, text):
		p.settings = There
		p.add(There, "config", "", "", "the same is there")
		return nil
	case bytes.Equal(draft, text):
		p.settings = There
		p.add(There, "config", "", beside, "the same is there. "+merge)
		return nil
	case !errors.Is(draftErr, fs.ErrNotExist):
		p.settings = Conflict
		p.add(Conflict, "config", "", beside, "another is there, and stays: move it away, and import again")
		return nil
	default:
		p.configName = beside
		p.settings = Conflict
		p.add(Conflict, "config", "", beside, t.Config+" is your own, and stays. "+merge)
	}
	p.config = text
	return nil
}
