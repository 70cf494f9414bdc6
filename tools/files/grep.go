package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"parley/chat"
	"parley/lazyregexp"
	"parley/tools"
	"parley/workspace"
)

const (
	maxGrep  = 2_000_000  // bytes of a file, if a folder is searched (D-071)
	maxNamed = 64_000_000 // bytes of a file, if the call names it
	maxShown = 2000       // characters of a line
)

type grepArgs struct {
	Pattern         string `json:"pattern" jsonschema:"regular expression (RE2)" limit:"min=1"`
	Path            string `json:"path" jsonschema:"directory or file" limit:"default=."`
	Glob            string `json:"glob,omitempty" jsonschema:"only such files, as src/**/*.ts"`
	Type            string `json:"type,omitempty" jsonschema:"only such files, as py or md"`
	CaseInsensitive bool   `json:"case_insensitive,omitempty"`
	FixedStrings    bool   `json:"fixed_strings,omitempty" jsonschema:"pattern is plain text"`
	OutputMode      string `json:"output_mode" limit:"choice=files_with_matches|content|count"`
	ContextBefore   int    `json:"context_before,omitempty" jsonschema:"lines, with content" limit:"min=0 max=20"`
	ContextAfter    int    `json:"context_after,omitempty" limit:"min=0 max=20"`
	HeadLimit       int    `json:"head_limit" jsonschema:"0: all" limit:"min=0 max=1000 default=250"`
	Offset          int    `json:"offset,omitempty" limit:"min=0 max=100000"`
}

// types maps the types of files that are not simply a file name extension to patterns.
var types = map[string]string{
	"py": "*.{py,pyi}", "python": "*.{py,pyi}", "js": "*.{js,jsx,mjs,cjs}", "javascript": "*.{js,jsx,mjs,cjs}",
	"ts": "*.{ts,tsx,mts,cts}", "typescript": "*.{ts,tsx,mts,cts}",
	"golang": "*.go", "rust": "*.rs", "md": "*.{md,mdx,markdown}", "markdown": "*.{md,mdx,markdown}",
	"yaml": "*.{yaml,yml}", "html": "*.{html,htm}", "c": "*.{c,h}", "sh": "*.{sh,bash}",
}

func greps() tools.Tool {
	t := newTool(
		"grep",
		"Search files of the workspace for lines that match pattern; not binary and big ones, nor folders such as "+
			".git.",
		tools.Resolve,
		grep,
	)
	t.ReadOnly = true
	t.Preview = previewOf("pattern")
	t.Use = tools.Rare
	t.Aliases = aliases("query", "pattern", "regex", "pattern", "search", "pattern", "include", "glob", "ignore_case",
		"case_insensitive", "limit", "head_limit", "max_results", "head_limit", "max_matches", "head_limit")
	return t
}

// grep implements the tool grep (D-070).
func grep(ctx context.Context, c tools.Call, at workspace.Path, in grepArgs) (r tools.Result, err error) {
	s, err := newSearch(in)
	if err != nil {
		return r, err
	}
	s.call = c
	files, unseen, err := s.files(ctx, at)
	if err != nil {
		return r, err
	}
	s.all(ctx, files)
	if s.named && s.refusal != nil {
		return r, s.refusal
	}
	text, also := s.text(ctx)
	r.Text = notes(text, append(also, unseen)...)
	r.TaintBy(c.Scope, paths(s.found)...)
	return r, ctx.Err()
}

// textEnds matches patterns that may match a line but not the block that the line is
// in, such as those with \A.
var textEnds = lazyregexp.New(`\\[Az]|\(\?\w*-`)

// newSearch returns a search for the pattern, or what is wrong with the pattern.
func newSearch(in grepArgs) (s search, err error) {
	s.args = in
	pattern := in.Pattern
	if in.FixedStrings {
		pattern = regexp.QuoteMeta(pattern)
	}
	if _, err := regexp.Compile(pattern); err != nil {
		problem := "invalid regex pattern: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		if e := (*syntax.Error)(nil); errors.As(err, &e) &&
			slices.Contains(
				[]syntax.ErrorCode{syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrInvalidEscape},
				e.Code,
			) {
			problem += ". The syntax is RE2: look-around ((?=, (?!, (?<=, (?<!) and backreferences (\\1) are not " +
				"supported."
		}
		return s, errors.New(problem)
	}
	if in.CaseInsensitive {
		pattern = "(?i)" + pattern
	}
	s.line, err = regexp.Compile(pattern)
	if err != nil {
		return s, err
	}
	if textEnds.MatchString(pattern) {
		pattern = ""
	}
	s.block, err = regexp.Compile("(?m)" + pattern)
	return s, err
}

// A search looks for lines in files.
type search struct {
	args        grepArgs
	line        *regexp.Regexp // matches one line
	block       *regexp.Regexp // matches a block of lines if any of them may match
	call        tools.Call
	found       []entry // the files with matches, by path
	big, binary int     // files that were skipped
	named       bool    // the call names a file, not a folder
	refusal     error   // why the first skipped file was skipped
}

// files returns the files to search: the one at that path, or those below it.
func (s *search) files(ctx context.Context, at workspace.Path) (files []workspace.Path, unseen string, err error) {
	if info, err := s.call.Workspace.Stat(at); err == nil && info.Mode().IsRegular() {
		s.named = true
		return []workspace.Path{at}, "", nil
	}
	kind := types[s.args.Type]
	if kind == "" && s.args.Type != "" {
		kind = "*." + s.args.Type
	}
	unseen, err = walker{at, "Path", s.args.Glob, false}.walk(ctx, s.call, func(file workspace.Path, d fs.DirEntry) {
		if d.Type().IsRegular() && matches(kind, d.Name()) {
			files = append(files, file)
		}
	})
	return files, unseen, err
}

// all searches the files, several at a time.
func (s *search) all(ctx context.Context, files []workspace.Path) {
	entries := make([]entry, len(files))
	errs := make([]error, len(files))
	var next atomic.Int64
	var workers tools.Group
	for range min(4, runtime.GOMAXPROCS(0)) {
		workers.Go(func() error {
			var buf bytes.Buffer
			for i := next.Add(1) - 1; i < int64(len(files)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				entries[i], errs[i] = s.one(ctx, files[i], &buf)
			}
			return nil
		})
	}
	_ = workers.Wait() // none of them returns an error
	for i, e := range entries {
		s.refusal = cmp.Or(s.refusal, errs[i])
		switch {
		case errors.Is(errs[i], workspace.ErrProtected): // the answer does not mention it
		case errors.Is(errs[i], workspace.ErrTooBig):
			s.big++
		case errs[i] != nil:
			s.binary++
		case e.n > 0:
			s.found = append(s.found, e)
		}
	}
}

// one searches a file. Unless matches are counted, it stops at the first.
func (s *search) one(ctx context.Context, at workspace.Path, buf *bytes.Buffer) (e entry, err error) {
	text, info, err := s.read(at, buf)
	if err != nil {
		return e, err
	}
	s.lines(ctx, text, func(int, int, int) bool {
		e.n++
		return s.args.OutputMode == "count"
	})
	e.at = at
	e.mtime = info.ModTime().UnixNano()
	return e, nil
}

// read returns the text of a file. It uses the memory of buf.
func (s *search) read(at workspace.Path, buf *bytes.Buffer) ([]byte, fs.FileInfo, error) {
	f, err := s.call.Workspace.Open(at)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case s.named && info.Size() > maxNamed:
		return nil, nil, fail(
			"%s has %d MB, and files of up to %d MB can be searched. Read parts of it with read_file, or split it.",
			pathOf(s.call), info.Size()/1_000_000, maxNamed/1_000_000)
	case !s.named && info.Size() > maxGrep:
		return nil, nil, workspace.ErrTooBig
	}
	buf.Reset()
	buf.Grow(int(info.Size()) + bytes.MinRead)
	_, err = buf.ReadFrom(io.LimitReader(f, info.Size()))
	if err != nil {
		return nil, nil, err
	}
	text, readable := textIn(buf.Bytes())
	if !readable {
		return nil, nil, fail("%s is a binary file: there are no lines to search", pathOf(s.call))
	}
	if bytes.Contains(text, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	return text, info, nil
}

// textIn returns the text of a file in UTF-8, if the file is readable as text.
func textIn(data []byte) (text []byte, readable bool) {
	head := data[:min(len(data), sniffBytes)]
	if old := legacyOf(head, http.DetectContentType(head)); old.encoding != nil {
		decoded, err := old.encoding.NewDecoder().Bytes(data)
		return decoded, err == nil
	}
	text = bytes.TrimPrefix(data, []byte(bom))
	return text, bytes.IndexByte(text, 0) < 0
}

// blockSize is about how many bytes are searched at a time: few enough for the regexp
// package to be fast, and for a search to stop soon after its context ends.
const blockSize = 16 << 10

// lines calls do for each line of text that matches, with its number and its offsets
// in text, until do returns false.
func (s *search) lines(ctx context.Context, text []byte, do func(number, start, end int) bool) {
	number := 1
	for pos := 0; pos < len(text) && ctx.Err() == nil; {
		block := text[pos:min(endOfLine(text, min(pos+blockSize, len(text)))+1, len(text))]
		if !match(ctx, s.block, block) {
			number += bytes.Count(block, []byte("\n"))
			pos += len(block)
			continue
		}
		for line := range bytes.Lines(block) {
			bare := bytes.TrimSuffix(line, []byte("\n"))
			if match(ctx, s.line, bare) && !do(number, pos, pos+len(bare)) {
				return
			}
			number++
			pos += len(line)
		}
	}
}

// match reports whether re matches text. For a long text it stops when ctx ends.
func match(ctx context.Context, re *regexp.Regexp, text []byte) bool {
	if len(text) <= 2*blockSize {
		return re.Match(text)
	}
	return re.MatchReader(runes{ctx, bytes.NewReader(text)})
}

type runes struct {
	ctx context.Context
	*bytes.Reader
}

func (r runes) ReadRune() (c rune, size int, err error) {
	if r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.Reader.ReadRune()
}

// endOfLine returns the end of the line that the offset pos is in.
func endOfLine(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(text)
}

// text returns the results for the model, and notes to append.
func (s *search) text(ctx context.Context) (text string, also []string) {
	sortNewest(s.found)
	lines := names(s.call.Workspace, s.found)
	sep := "\n"
	total := 0
	switch s.args.OutputMode {
	case "content":
		lines = s.content(ctx)
		sep = "\n\n"
	case "count":
		for i, f := range s.found {
			lines[i] += fmt.Sprintf(": %d", f.n)
			total += f.n
		}
	}
	lines, note := paged(lines, s.args.HeadLimit, s.args.Offset)
	text, n := fitting(lines, sep, "line")
	if n < len(lines) {
		note = "(output truncated due to size)"
	}
	if len(s.found) == 0 {
		text = fmt.Sprintf("No matches found for pattern '%s' in %s", s.args.Pattern, pathOf(s.call))
		note = ""
	}
	also = append(also, note)
	if s.binary > 0 {
		also = append(also, fmt.Sprintf("(skipped %d binary/unreadable files)", s.binary))
	}
	if s.big > 0 {
		also = append(also, fmt.Sprintf("(skipped %d large files)", s.big))
	}
	if total > 0 {
		also = append(also, fmt.Sprintf("(total matches: %d in %d files)", total, len(s.found)))
	}
	return text, also
}

// content returns the matching lines with their context, by path. It returns one more
// than the call asks for, and empty strings for those that it skips.
func (s *search) content(ctx context.Context) (blocks []string) {
	limit := s.args.HeadLimit
	size := 0
	enough := func() bool { return size > maxLine || limit > 0 && len(blocks) > s.args.Offset+limit }
	slices.SortFunc(s.found, func(a, b entry) int { return strings.Compare(a.at.String(), b.at.String()) })
	var buf bytes.Buffer
	for _, f := range s.found {
		text, _, err := s.read(f.at, &buf)
		if err != nil || enough() {
			continue // an error means that the file has changed since
		}
		s.lines(ctx, text, func(number, start, end int) bool {
			block := ""
			if len(blocks) >= s.args.Offset {
				block = s.around(legible(s.call.Workspace.View().Shown(f.at)), text, number, start, end)
			}
			blocks = append(blocks, block)
			size += len(block)
			return !enough()
		})
	}
	return blocks
}

// around returns a line with the lines around it, numbered.
func (s *search) around(name string, text []byte, number, start, end int) string {
	first := number
	for ; number-first < s.args.ContextBefore && start > 0; first-- {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
	}
	for n := 0; n < s.args.ContextAfter && end+1 < len(text); n++ {
		end = endOfLine(text, end+1)
	}
	b := fmt.Sprintf("%s:%d", name, number)
	for i, line := range strings.Split(string(text[start:end]), "\n") {
		mark := " "
		if first+i == number {
			mark = ">"
		}
		b += fmt.Sprintf("\n%s %d| %s", mark, first+i, s.shown(line))
	}
	return b
}

// shown returns line, or the part around the first match if the line is long.
func (s *search) shown(line string) string {
	const more = "… (the line is longer)"
	at := []int{0, 0}
	if len(line) > maxShown {
		at = s.line.FindStringIndex(line)
	}
	if at == nil || at[1] <= maxShown {
		return chat.Clip(line, maxShown, more)
	}
	start := max(at[0]-maxShown/4, 0)
	return "(the line begins before) …" + chat.Clip(strings.ToValidUTF8(line[start:], ""), maxShown, more)
}
