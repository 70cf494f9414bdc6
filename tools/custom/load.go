package custom

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"parley/workspace"
)

// A Fault says why the folder of a tool holds no tool that can be used (B-004).
type Fault struct {
	Folder string `json:"folder"`
	File   string `json:"file"` // "" if it is about the whole folder
	Reason string `json:"reason"`
}

func (f Fault) String() string {
	return fmt.Sprintf("%s: %s", path.Join(f.Folder, f.File), f.Reason)
}

// A Listing is what a Library holds, sorted by folder (B-011).
type Listing struct {
	Tools  []Definition // including those with an invalid id
	Faults []Fault
}

// FaultTexts returns what is wrong, one line each.
func (l Listing) FaultTexts() (texts []string) {
	for _, f := range l.Faults {
		texts = append(texts, f.String())
	}
	return texts
}

// A loaded folder is what was read of it last.
type loaded struct {
	stamps  [4]stamp // of the four files
	settled bool     // the files had not just been written when they were read
	files   map[string]string
	tool    Definition
	fault   *fault // nil: tool can be used
}

// A stamp tells one state of a file from another.
type stamp struct {
	exists bool
	size   int64
	time   time.Time
}

// settleTime is how long after a change of a file its stamp may stay the same although the file
// changes again, because clocks of file systems are coarse.
const settleTime = 2 * time.Second

// List returns the tools and what is wrong with the others. Each call looks at the files (B-012).
func (l *Library) List() Listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list()
}

// list is List; the caller holds l.mu.
func (l *Library) list() Listing {
	all := Listing{Tools: []Definition{}, Faults: []Fault{}}
	found := map[string]bool{}
	byID := map[string]string{} // in lower case -> folder
	folders, err := l.folders()
	if err != nil {
		all.Faults = append(all.Faults, Fault{Reason: err.Error()})
	}
	for _, folder := range folders {
		found[folder] = true
		read := l.read(folder)
		if read.fault == nil {
			read.fault = l.checkPlace(read.tool, byID)
		}
		if read.fault != nil {
			all.Faults = append(all.Faults, Fault{folder, read.fault.file, read.fault.reason})
			continue
		}
		if !read.tool.InvalidID {
			byID[strings.ToLower(read.tool.ID)] = folder
		}
		all.Tools = append(all.Tools, read.tool)
	}
	for folder := range l.loaded {
		if !found[folder] {
			delete(l.loaded, folder)
		}
	}
	return all
}

// checkPlace returns why d cannot be offered beside the other tools there are.
func (l *Library) checkPlace(d Definition, byID map[string]string) *fault {
	if other := byID[strings.ToLower(d.ID)]; other != "" { // B-009
		return &fault{fileDefinition, fmt.Sprintf("the tool in %q has the id %q already", other, d.ID)}
	}
	if why := l.whyReserved(d.ID); why != "" {
		return &fault{fileDefinition, why}
	}
	return nil
}

// folders returns the names of the folders of tools, sorted.
func (l *Library) folders() (names []string, err error) {
	entries, err := l.files.Names().ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the folder of custom tools: %w", err)
	}
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") // those of the Library itself, too
		if !hidden && (e.IsDir() || e.Type()&fs.ModeSymlink != 0) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// read returns what is in a folder. It reads files only if they have changed. A file that changes
// while it is read is read again.
func (l *Library) read(folder string) loaded {
	stamps := l.stamp(folder)
	if known, found := l.loaded[folder]; found && known.settled && known.stamps == stamps {
		return known
	}
	var now loaded
	for range 5 {
		now = l.load(folder)
		now.stamps = stamps
		if after := l.stamp(folder); after != stamps {
			stamps = after
			continue
		}
		break
	}
	now.settled = true
	for _, s := range now.stamps {
		if age := time.Since(s.time); s.exists && age < settleTime {
			now.settled = false
		}
	}
	if known := l.loaded[folder].fault; now.fault != nil && (known == nil || *known != *now.fault) {
		l.log.Warn("custom tool not loaded", "folder", folder, "err", now.fault)
	}
	l.loaded[folder] = now
	return now
}

// stamp returns the stamps of the files in a folder.
func (l *Library) stamp(folder string) (stamps [4]stamp) {
	for i, name := range fileNames {
		info, err := l.files.Names().Stat(path.Join(folder, name))
		if err != nil {
			continue // reading the file says why
		}
		stamps[i] = stamp{true, info.Size(), info.ModTime()}
	}
	return stamps
}

// load reads the files in a folder.
func (l *Library) load(folder string) loaded {
	now := loaded{files: map[string]string{}}
	for _, name := range fileNames {
		text, err := l.readFile(folder, name)
		var wrong *fault
		switch {
		case err == nil:
			now.files[name] = text
		case errors.Is(err, fs.ErrNotExist):
		case name == fileReturn || name == fileMeta: // B-005
			now.tool.warn("%v: it is ignored", err)
		case errors.As(err, &wrong):
			now.fault = wrong
		default:
			now.fault = &fault{name, err.Error()}
		}
	}
	if now.fault != nil {
		return now
	}
	d, err := parse(folder, now.files)
	d.Warnings = append(d.Warnings, now.tool.Warnings...)
	now.tool = d
	if errors.As(err, &now.fault); now.fault == nil {
		now.tool.Warnings = append(now.tool.Warnings, lint(d)...)
	}
	return now
}

// readFile returns the text of one file of a tool.
func (l *Library) readFile(folder, name string) (string, error) {
	at := path.Join(folder, name)
	if info, err := l.files.Names().Stat(at); err == nil && info.Size() > maxFile {
		return "", &fault{name, msgTooLarge}
	}
	data, err := l.files.Names().ReadFile(at)
	if err != nil {
		return "", explain(name, err)
	}
	return readText(name, data)
}

// explain returns err as a fault of a file, unless the file does not exist.
func explain(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if errors.Is(err, workspace.ErrNotFile) {
		return &fault{name, "it is not a regular file"}
	}
	if _, outside := errors.AsType[*workspace.OutsideError](err); outside {
		return &fault{name, "it lies outside the folder of custom tools"}
	}
	return &fault{name, err.Error()}
}

// revision identifies one state of the files.
func revision(files map[string]string) string {
	sum := sha256.New()
	for _, name := range fileNames {
		if text, found := files[name]; found {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Get returns the tool called id, or ErrNotFound.
func (l *Library) Get(id string) (Definition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(id)
}

// get is Get; the caller holds l.mu.
func (l *Library) get(id string) (Definition, error) {
	for _, d := range l.list().Tools {
		if d.ID == id {
			return d, nil
		}
	}
	return Definition{}, fmt.Errorf("%w: %s", ErrNotFound, id) // B-045
}

// Usable returns the tools that can be offered to models.
func (l Listing) Usable() []Definition {
	return slices.DeleteFunc(slices.Clone(l.Tools), func(d Definition) bool { return d.InvalidID })
}
