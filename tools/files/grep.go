package files

import (
	"bytes"
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
	"parley/tools"
	"parley/workspace"
)

const (
	maxGrep  = 2_000_000  // bytes of a file that is searched (D-071)
	maxNamed = 64_000_000 // bytes of the file that is searched, if one is named
	maxShown = 2000       // characters of a line that is shown
)

type grepArgs struct {
	Pattern         string `json:"pattern" jsonschema:"a regular expression in RE2 syntax, which a line must match" limit:"min=1"`
	Path            string `json:"path,omitempty" jsonschema:"the directory or file to search, relative to the workspace" limit:"default=."`
	Glob            string `json:"glob,omitempty" jsonschema:"search only files whose names it matches, such as *.go or src/**/*.ts"`
	Type            string `json:"type,omitempty" jsonschema:"search only files of this type, such as py, ts, go, md"`
	CaseInsensitive bool   `json:"case_insensitive,omitempty" jsonschema:"take a and A for the same"`
	FixedStrings    bool   `json:"fixed_strings,omitempty" jsonschema:"pattern is plain text and no regular expression"`
	OutputMode      string `json:"output_mode,omitempty" jsonschema:"the paths of the files, the lines, or how many in each file" limit:"enum=files_with_matches|content|count default=files_with_matches"`
	ContextBefore   int    `json:"context_before,omitempty" jsonschema:"how many lines to show before each line; only with content" limit:"min=0 max=20"`
	ContextAfter    int    `json:"context_after,omitempty" jsonschema:"how many lines to show after each line; only with content" limit:"min=0 max=20"`
	HeadLimit       int    `json:"head_limit,omitempty" jsonschema:"how many paths or lines to return at most; 0 is all" limit:"min=0 max=1000 default=250"`
	Offset          int    `json:"offset,omitempty" jsonschema:"how many paths or lines to leave out first" limit:"min=0 max=100000"`
}

// types are the files that go by another name than their ending.
var types = map[string]string{
	"py": "*.{py,pyi}", "python": "*.{py,pyi}", "js": "*.{js,jsx,mjs,cjs}", "javascript": "*.{js,jsx,mjs,cjs}",
	"ts": "*.{ts,tsx,mts,cts}", "typescript": "*.{ts,tsx,mts,cts}",
	"golang": "*.go", "rust": "*.rs", "md": "*.{md,mdx,markdown}", "markdown": "*.{md,mdx,markdown}",
	"yaml": "*.{yaml,yml}", "html": "*.{html,htm}", "c": "*.{c,h}", "sh": "*.{sh,bash}",
}

func greps() tools.Tool {
	t := tool(
		"grep",
		nil,
		"Search the files of the workspace for lines that match. Leaves out binary and big files, and what is rarely "+
			"of interest, such as .git and node_modules.",
		tools.Resolve,
		grep,
	)
	t.ReadOnly, t.Preview = true, about(stepSearch, "pattern")
	t.Aliases = named("query", "pattern", "regex", "pattern", "search", "pattern", "include", "glob", "ignore_case",
		"case_insensitive", "limit", "head_limit", "max_results", "head_limit", "max_matches", "head_limit")
	return t
}

// grep is grep (D-070).
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

// textEnds is in patterns that may match a line and not the block it is in.
var textEnds = regexp.MustCompile(`\\[Az]|\(\?\w*-`)

// newSearch returns a search for the pattern, or says what is wrong with it.
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
	if textEnds.MatchString(pattern) {
		pattern = ""
	}
	if err == nil {
		s.block, err = regexp.Compile("(?m)" + pattern)
	}
	return s, err
}

// A search looks through files.
type search struct {
	args        grepArgs
	line, block *regexp.Regexp // for one line, and for many: no line matches where that finds nothing
	call        tools.Call
	found       []entry // the files with matches, by path
	big, binary int     // files left out
	named       bool    // the path is a file
	refusal     error   // why the first file that was left out was
}

// files returns the files to search: what is at that path, or below it.
func (s *search) files(ctx context.Context, at workspace.Path) (files []workspace.Path, unseen string, err error) {
	if info, err := s.call.Workspace.Stat(at); err == nil && info.Mode().IsRegular() {
		s.named = true
		return []workspace.Path{at}, "", nil
	}
	kind := types[s.args.Type]
	if kind == "" && s.args.Type != "" {
		kind = "*." + s.args.Type
	}
	unseen, err = hunt{at, "Path", s.args.Glob, false}.walk(ctx, s.call, func(file workspace.Path, d fs.DirEntry) {
		if d.Type().IsRegular() && matches(kind, d.Name()) {
			files = append(files, file)
		}
	})
	return files, unseen, err
}

// all searches the files, several at once.
func (s *search) all(ctx context.Context, files []workspace.Path) {
	entries, errs := make([]entry, len(files)), make([]error, len(files))
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
		if s.refusal == nil {
			s.refusal = errs[i]
		}
		switch {
		case errors.Is(errs[i], workspace.ErrProtected): // as if it were not there
		case errors.Is(errs[i], workspace.ErrTooBig):
			s.big++
		case errs[i] != nil:
			s.binary++
		case e.n > 0:
			s.found = append(s.found, e)
		}
	}
}

// one searches a file, to its end only if its matches are counted.
func (s *search) one(ctx context.Context, at workspace.Path, buf *bytes.Buffer) (e entry, err error) {
	text, info, err := s.read(at, buf)
	if err != nil {
		return e, err
	}
	s.lines(ctx, text, func(int, int, int) bool {
		e.n++
		return s.args.OutputMode == "count"
	})
	e.at, e.mtime = at, info.ModTime().UnixNano()
	return e, nil
}

// read returns the text of a file, which buf holds.
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
	text, readable := textIn(buf.Bytes())
	if err == nil && !readable {
		err = fail("%s is a binary file: there are no lines to search", pathOf(s.call))
	}
	if bytes.Contains(text, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	return text, info, err
}

// textIn returns the text of a file, if it is one, in UTF-8.
func textIn(data []byte) (text []byte, readable bool) {
	head := data[:min(len(data), sniffBytes)]
	if old := legacyOf(head, http.DetectContentType(head)); old.encoding != nil {
		decoded, err := old.encoding.NewDecoder().Bytes(data)
		return decoded, err == nil
	}
	text = bytes.TrimPrefix(data, []byte(bom))
	return text, bytes.IndexByte(text, 0) < 0
}

// blockSize is about how many bytes are searched at once: few enough for the
// regexp package to be quick, and for a search to end when it is told to.
const blockSize = 16 << 10

// lines calls do for each line of text that matches, with its number and its
// place in text, until do returns false.
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

// match is re.Match, which ends with ctx however long the text is.
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

// endOfLine returns where the line ends that pos is in.
func endOfLine(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(text)
}

// text returns what was found, and what to note of it.
func (s *search) text(ctx context.Context) (text string, also []string) {
	sortNewest(s.found)
	lines, sep := names(s.found), "\n"
	total := 0
	switch s.args.OutputMode {
	case "content":
		lines, sep = s.content(ctx), "\n\n"
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
		text, note = fmt.Sprintf("No matches found for pattern '%s' in %s", s.args.Pattern, pathOf(s.call)), ""
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

// content returns the lines that match as they are shown, by path: as many as
// are asked for and one more, and nothing for those before them.
func (s *search) content(ctx context.Context) (blocks []string) {
	limit, size := s.args.HeadLimit, 0
	enough := func() bool { return size > maxLine || limit > 0 && len(blocks) > s.args.Offset+limit }
	slices.SortFunc(s.found, func(a, b entry) int { return strings.Compare(a.at.String(), b.at.String()) })
	var buf bytes.Buffer
	for _, f := range s.found {
		text, _, err := s.read(f.at, &buf)
		if err != nil || enough() { // an error: it is another by now
			continue
		}
		s.lines(ctx, text, func(number, start, end int) bool {
			block := ""
			if len(blocks) >= s.args.Offset {
				block = s.around(legible(f.at.String()), text, number, start, end)
			}
			blocks, size = append(blocks, block), size+len(block)
			return !enough()
		})
	}
	return blocks
}

// around shows a line and those around it.
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

// shown returns line, or of a long one the part around its first match.
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
