package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/backup"
	"parley/host"
)

// Bytes that a disk should have free.
const (
	littleSpace = 500 << 20
	noSpace     = 20 << 20
)

// ConfigFile checks the config file, if it was found. The warnings are about what it says.
func ConfigFile(file string, found bool, warnings []string) Finding {
	if !found {
		return Finding{Warn, "defaults: there is no " + file, "parley onboard writes one"}
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return Finding{Warn, file + " can be read by others on this machine", "chmod 600 " + file}
	}
	if len(warnings) > 0 {
		advice := "change what they name in " + file + " unless you mean it"
		return Finding{Warn, strings.Join(warnings, "\n"), advice}
	}
	return Finding{OK, file, ""}
}

// Folder checks that dir can be written to, has space left and is closed to other
// users. The folder except inside it is not searched.
func Folder(dir, except string) Finding {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Finding{OK, dir + " is not there yet: parley makes it", ""}
	case err != nil:
		advice := cmp.Or(host.AccessAdvice(err), "give the user that runs parley the right to use it")
		return Finding{Fail, err.Error(), advice}
	case !info.IsDir():
		return Finding{Fail, dir + " is no folder", "move it away, or name another folder in the config"}
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return Finding{Fail, "cannot write: " + err.Error(), cmp.Or(host.AccessAdvice(err), "free some space")}
	}
	_ = errors.Join(f.Close(), os.Remove(f.Name()))
	space := freeSpace(dir)
	if space.Status != OK {
		return space
	}
	exposed, err := host.Exposed(dir, except)
	if err != nil {
		return Finding{Warn, "cannot look at all files: " + err.Error(), host.AccessAdvice(err)}
	}
	if n := len(exposed); n > 0 {
		advice := "run: chmod -R go-rwx " + dir + "; parley does that whenever it starts"
		return Finding{Warn, openText(dir, exposed), advice}
	}
	return space
}

// openText says which of what is in dir, with "." for dir itself, other users can reach.
func openText(dir string, exposed []string) string {
	const others = "other users of this machine have access to "
	rest := slices.DeleteFunc(slices.Clone(exposed), func(name string) bool { return name == "." })
	inside := "1 file or folder"
	if len(rest) > 1 {
		inside = fmt.Sprintf("%d files or folders", len(rest))
	}
	switch {
	case len(rest) == 0:
		return others + dir
	case len(rest) < len(exposed):
		return others + dir + " and to " + inside + " in it, such as " + rest[0]
	}
	return others + inside + " in " + dir + ", such as " + rest[0]
}

// freeSpace checks how much space is left on the disk of dir.
func freeSpace(dir string) Finding {
	free, _, known := host.FreeSpace(dir)
	if !known {
		return Finding{OK, dir, ""}
	}
	text := fmt.Sprintf("%s, %d MiB free", dir, free>>20)
	switch {
	case free < noSpace:
		return Finding{Fail, text, "free some space: nothing can be accepted on a full disk"}
	case free < littleSpace:
		return Finding{Warn, text, "free some space soon"}
	}
	return Finding{OK, text, ""}
}

// Workspace checks the agent's folder, which must exist if there is a store.
// startEmpty is the command that starts with an empty one.
func Workspace(dir, dataDir, startEmpty string) Finding {
	store := filepath.Join(dataDir, backup.StoreFile)
	if len(backup.Existing(store)) > 0 && len(backup.Existing(dir)) == 0 {
		text := dir + " is gone or empty, though there is a store: the agent's memory and files are missing"
		advice := "mount it or put it back, or take it from a backup; to begin with an empty one: " + startEmpty
		return Finding{Fail, text, advice}
	}
	return Folder(dir, "")
}
