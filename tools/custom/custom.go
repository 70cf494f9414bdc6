// Package custom runs the tools that owners write.
//
// A custom tool is a folder of four files (B-001, B-002): definition.json describes it to the
// model, execution.py is a template of the Python program that it runs, return.json says what
// becomes of its output, and meta.json holds notes. The files may be changed at any time, with any
// editor: each use looks at them anew (B-012).
package custom

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/workspace"
)

// The files of a tool (B-002). The first two are required.
const (
	fileDefinition = "definition.json"
	fileCode       = "execution.py"
	fileReturn     = "return.json"
	fileMeta       = "meta.json"
)

var fileNames = []string{fileDefinition, fileCode, fileReturn, fileMeta}

// Folder is the name of the folder of custom tools in Parley's data folder.
const Folder = "custom_tools"

// maxFile is how many bytes each file may have.
const maxFile = 256 << 10

// Errors that callers distinguish.
var (
	ErrNotFound = errors.New("custom tool not found")
	// ErrConflict is returned if somebody else has changed a tool since it was read.
	ErrConflict = errors.New("this tool was changed by somebody else in the meantime")
)

// A Refusal says why a change cannot be made, in words for people.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

func refusef(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// A Library is the folder of the custom tools. It is safe for concurrent use.
type Library struct {
	files    *workspace.Workspace
	log      *slog.Logger
	reserved atomic.Pointer[[]string] // in lower case

	mu     sync.Mutex        // held while tools are read or changed
	loaded map[string]loaded // by folder
}

// MsgOff says why there are no custom tools.
const MsgOff = "custom tools are switched off in the config (tools.custom.enable)"

// Examine lists what is in the folder dir of a Library, which may be in use, and changes nothing.
// reserved are the names of built-in tools.
func Examine(dir string, reserved []string) (Listing, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return Listing{}, nil
	}
	l, err := open(dir, nil)
	if err != nil {
		return Listing{}, err
	}
	l.Reserve(reserved)
	return l.List(), l.Close()
}

// Open opens the folder dir of a Library, and creates it if it does not exist (B-001). A change that
// a crash has interrupted is completed.
func Open(dir string, log *slog.Logger) (*Library, error) {
	l, err := open(dir, log)
	if err != nil {
		return nil, err
	}
	if err := l.recoverAll(); err != nil { // the other tools can be used
		l.log.Error("interrupted change of a custom tool not completed", "err", err)
	}
	return l, nil
}

func open(dir string, log *slog.Logger) (*Library, error) {
	files, err := workspace.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open custom tools: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Library{files: files, log: log, loaded: map[string]loaded{}}, nil
}

// Files returns the folder, for backups.
func (l *Library) Files() *workspace.Workspace { return l.files }

// Close closes the folder.
func (l *Library) Close() error { return l.files.Close() }

// Reserve names the tools that custom tools may not replace (B-010, R-S21).
func (l *Library) Reserve(names []string) {
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	l.reserved.Store(&lower)
}

// whyReserved returns why a custom tool may not be called id; "" if it may.
func (l *Library) whyReserved(id string) string {
	id = strings.ToLower(id)
	if strings.HasPrefix(id, "mcp_") {
		return msgReservedMCP
	}
	if names := l.reserved.Load(); names != nil && slices.Contains(*names, id) {
		return msgReserved
	}
	return ""
}

const (
	msgReserved    = "a custom tool cannot have the name of a built-in tool" // B-010
	msgReservedMCP = "names that begin with mcp_ are for the tools of MCP servers"
)
