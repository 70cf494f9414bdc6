package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

// The Library's own files. No tool can have these names.
const (
	versionsDir = ".versions" // <folder>/<number>.json
	pendingDir  = ".pending"  // <folder>: the number of the version that is being written
	maxVersions = 50          // of a tool
)

// byEditor is who changed a tool that was edited on disk.
const byEditor = "an editor"

// A Version is one state of the files of a tool, numbered from 1.
type Version struct {
	Number   int       `json:"number"`
	Time     time.Time `json:"time"`
	By       string    `json:"by"`
	Deleted  bool      `json:"deleted"` // the tool was removed
	Revision string    `json:"revision"`

	files map[string]string
}

// A versionFile is a Version on disk.
type versionFile struct {
	Version
	Files map[string]string `json:"files"`
}

// replace makes files the content of a folder, or removes the folder if there are none. The former
// content and the new one are kept as versions. After a crash, recovery ends what was begun. The
// caller holds l.mu.
func (l *Library) replace(folder string, files map[string]string, by string) error {
	numbers, err := l.numbers(folder)
	if err != nil {
		return err
	}
	next := 1
	var last Version
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
		last, _ = l.version(folder, numbers[len(numbers)-1]) // one that is damaged differs from what there is
	}
	now := l.load(folder).files
	if len(now) > 0 && revision(now) != last.Revision {
		if err := l.keep(folder, Version{Number: next, Time: time.Now(), By: byEditor, files: now}); err != nil {
			return err
		}
		next++
	}
	v := Version{Number: next, Time: time.Now(), By: by, Deleted: len(files) == 0, files: files}
	if err := l.keep(folder, v); err != nil {
		return err
	}
	mark := path.Join(pendingDir, folder)
	if err := l.files.Names().WriteFile(mark, []byte(strconv.Itoa(next))); err != nil {
		return fmt.Errorf("save custom tool %s: %w", folder, err)
	}
	if err := l.apply(folder, v); err != nil {
		return err
	}
	l.prune(folder)
	return nil
}

// keep writes a version.
func (l *Library) keep(folder string, v Version) error {
	v.Revision = revision(v.files)
	body := encode(versionFile{v, v.files})
	if err := l.files.Names().WriteFile(versionName(folder, v.Number), body); err != nil {
		return fmt.Errorf("keep a version of custom tool %s: %w", folder, err)
	}
	return nil
}

func versionName(folder string, number int) string {
	return path.Join(versionsDir, folder, fmt.Sprintf("%06d.json", number))
}

// apply makes v the content of a folder, and removes the mark that says that it is pending.
func (l *Library) apply(folder string, v Version) error {
	defer delete(l.loaded, folder)
	for _, name := range fileNames {
		if text, found := v.files[name]; found {
			if err := l.files.Names().WriteFile(path.Join(folder, name), []byte(text)); err != nil {
				return fmt.Errorf("save custom tool %s: %w", folder, err)
			}
			continue
		}
		if err := l.remove(path.Join(folder, name)); err != nil {
			return fmt.Errorf("save custom tool %s: %w", folder, err)
		}
	}
	if len(v.files) == 0 {
		if err := l.remove(folder); err != nil {
			return fmt.Errorf("delete custom tool %s: %w", folder, err)
		}
	}
	return l.remove(path.Join(pendingDir, folder))
}

// remove removes a file or folder, if it exists.
func (l *Library) remove(name string) error {
	p, err := l.files.Named(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.files.RemoveAll(p)
}

// recoverAll completes changes that a crash has interrupted.
func (l *Library) recoverAll() error {
	entries, err := l.files.Names().ReadDir(pendingDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, l.recover(e.Name()))
	}
	return err
}

func (l *Library) recover(folder string) error {
	mark, err := l.files.Names().ReadFile(path.Join(pendingDir, folder))
	if err != nil {
		return fmt.Errorf("recover custom tool %s: %w", folder, err)
	}
	number, _ := strconv.Atoi(string(mark)) // 0 is none
	v, err := l.version(folder, number)
	if err != nil {
		return fmt.Errorf("recover custom tool %s: %w", folder, err)
	}
	l.log.Info("interrupted change of a custom tool completed", "folder", folder, "version", number)
	return l.apply(folder, v)
}

// numbers returns the numbers of the versions of a folder, in order.
func (l *Library) numbers(folder string) (all []int, err error) {
	entries, err := l.files.Names().ReadDir(path.Join(versionsDir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the versions of custom tool %s: %w", folder, err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			continue // it is no version
		}
		all = append(all, number)
	}
	slices.Sort(all)
	return all, nil
}

// version reads one version of a folder. The error is ErrNotFound if there is none.
func (l *Library) version(folder string, number int) (Version, error) {
	body, err := l.files.Names().ReadFile(versionName(folder, number))
	if errors.Is(err, fs.ErrNotExist) {
		return Version{}, fmt.Errorf("%w: version %d of %s", ErrNotFound, number, folder)
	}
	if err != nil {
		return Version{}, fmt.Errorf("read version %d of custom tool %s: %w", number, folder, err)
	}
	var v versionFile
	if err := json.Unmarshal(bytes.TrimSpace(body), &v); err != nil {
		return Version{}, fmt.Errorf("read version %d of custom tool %s: %w", number, folder, err)
	}
	v.Version.files = v.Files
	return v.Version, nil
}

// prune removes the oldest versions of a folder. If it fails, the next change may succeed.
func (l *Library) prune(folder string) {
	numbers, _ := l.numbers(folder)
	for _, number := range numbers[:max(0, len(numbers)-maxVersions)] {
		_ = l.remove(versionName(folder, number))
	}
}

// Versions returns the states that a tool has had, the latest first. It need not exist any more. A
// version that cannot be read is left out.
func (l *Library) Versions(id string) ([]Version, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.anyFolder(id)
	if err != nil {
		return nil, err
	}
	numbers, err := l.numbers(folder)
	if err != nil {
		return nil, err
	}
	all := []Version{}
	for _, number := range slices.Backward(numbers) {
		v, err := l.version(folder, number)
		if err != nil {
			l.log.Warn("version of a custom tool not read", "folder", folder, "version", number, "err", err)
			continue
		}
		all = append(all, v)
	}
	return all, nil
}

// anyFolder returns the folder of a tool that exists or existed, or ErrNotFound.
func (l *Library) anyFolder(id string) (string, error) {
	folder, err := l.folderOf(id)
	if !errors.Is(err, ErrNotFound) {
		return folder, err
	}
	if numbers, err := l.numbers(id); err != nil || len(numbers) > 0 {
		return id, err
	}
	return "", err
}

// Deleted returns the ids of tools that were deleted and can be restored, sorted.
func (l *Library) Deleted() ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folders, err := l.folders()
	if err != nil {
		return nil, err
	}
	entries, err := l.files.Names().ReadDir(versionsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the versions of custom tools: %w", err)
	}
	ids := []string{}
	for _, e := range entries {
		if !slices.Contains(folders, e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Diff returns how the files of a tool differ now from those of a version, in unified format. It is
// "" if they are the same.
func (l *Library) Diff(id string, number int) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.anyFolder(id)
	if err != nil {
		return "", err
	}
	v, err := l.version(folder, number)
	if err != nil {
		return "", err
	}
	now := l.load(folder).files
	var b strings.Builder
	for _, name := range fileNames {
		from := fmt.Sprintf("%s (version %d)", name, number)
		b.WriteString(udiff.Unified(from, name+" (now)", v.files[name], now[name]))
	}
	return b.String(), nil
}

// Restore makes a version the present state of a tool, also of one that was deleted. The state
// before is kept as a version.
func (l *Library) Restore(id string, number int, by string) (Definition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.anyFolder(id)
	if err != nil {
		return Definition{}, err
	}
	v, err := l.version(folder, number)
	if err != nil {
		return Definition{}, err
	}
	if len(v.files) == 0 {
		return Definition{}, refusef("in version %d the tool is deleted", number)
	}
	d, err := parse(folder, v.files)
	if err := refuseFault(d, err); err != nil {
		return Definition{}, err
	}
	if why := l.whyReserved(d.ID); why != "" {
		return Definition{}, refusef("%s", why)
	}
	if err := l.replace(folder, maps.Clone(v.files), by); err != nil {
		return Definition{}, err
	}
	return l.get(d.ID)
}

// indent lays out JSON for people.
func indent(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}
