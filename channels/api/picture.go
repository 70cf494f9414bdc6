package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A picture is an image of a request, in its spool.
type picture struct {
	kind string // as the client says
	data *io.SectionReader
	err  error // why it cannot be read
}

// pictureTypes are those that models can be shown.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// contentType returns the type of p by its content. The error says what is wrong with it.
func (p picture) contentType() (string, error) {
	head := make([]byte, 512)
	n, _ := p.data.ReadAt(head, 0) // a short one is one, too
	kind := http.DetectContentType(head[:n])
	if p.err != nil || !slices.Contains(pictureTypes, kind) {
		return "", fmt.Errorf("an image of type %.40q cannot be read; it must be PNG, JPEG, GIF or WebP", p.kind)
	}
	return kind, nil
}

// A spool reads a request in JSON and yields it without its pictures: they can
// be many megabytes, and go into a file as they come in. In the place of each
// data URL that is the value of a key "url" there is the reference of a picture.
type spool struct {
	in       *bufio.Reader
	dir      string   // where the file is made
	file     *os.File // nil until it is needed; it has no name
	size     int64    // of file
	pictures []picture

	out      bytes.Buffer // to be yielded
	inString bool
	escaped  bool   // the byte before was a backslash
	last     []byte // the beginning of the latest string
	before   byte   // the latest byte outside strings that is no space
	err      error
}

const (
	reference   = "data:parley-picture," // then number and digest, so that requests can be compared
	maxDataHead = 256                    // bytes before the content of a data URL
)

func newSpool(r io.Reader, dir string) *spool {
	return &spool{in: bufio.NewReaderSize(r, 32<<10), dir: dir}
}

// close forgets the pictures.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read
	}
}

// picture returns the one that url refers to, or an error that says what an
// image must be. Addresses are not fetched: a client could have us call any
// that we can reach (R-S19).
func (s *spool) picture(url string) (picture, error) {
	number, _, _ := strings.Cut(strings.TrimPrefix(url, reference), ",")
	i, err := strconv.Atoi(number)
	if !strings.HasPrefix(url, reference) || err != nil || i < 0 || i >= len(s.pictures) {
		return picture{}, errors.New("images must be sent as data: URLs in base64; addresses are not fetched")
	}
	return s.pictures[i], nil
}

// Read implements [io.Reader].
func (s *spool) Read(p []byte) (int, error) {
	for s.out.Len() < len(p) && s.err == nil {
		s.err = s.step()
	}
	if s.out.Len() == 0 {
		return 0, s.err
	}
	return s.out.Read(p)
}

// step reads one byte, or a picture.
func (s *spool) step() error {
	c, err := s.in.ReadByte()
	if err != nil {
		return err
	}
	s.out.WriteByte(c)
	switch {
	case s.escaped:
		s.escaped = false
	case s.inString && c == '\\':
		s.escaped = true
	case s.inString && c == '"':
		s.inString = false
	case s.inString:
		if len(s.last) < len("url")+1 {
			s.last = append(s.last, c)
		}
	case c == '"':
		isURL := s.before == ':' && string(s.last) == "url"
		s.inString = true
		s.before = c
		s.last = s.last[:0]
		if kind, n := s.dataHead(); isURL && n > 0 {
			_, _ = s.in.Discard(n) // it was peeked at
			return s.take(kind)
		}
	case c != ' ' && c != '\t' && c != '\n' && c != '\r':
		s.before = c
	}
	return nil
}

// dataHead returns the type of the data URL that comes next, and how many bytes
// are before its content; 0 if none does.
func (s *spool) dataHead() (kind string, n int) {
	ahead, _ := s.in.Peek(maxDataHead) // near the end there are fewer
	comma := bytes.IndexByte(ahead, ',')
	if comma < 0 {
		return "", 0
	}
	head := strings.ReplaceAll(string(ahead[:comma]), `\/`, "/")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	kind, isData := strings.CutPrefix(kind, "data:")
	if !isData || !isBase64 || strings.ContainsAny(kind, `"\`) {
		return "", 0
	}
	return kind, comma + 1
}

// take reads a picture, whose data URL has begun, into the file, and puts its
// reference in its place.
func (s *spool) take(kind string) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, ".upload-*")
		if err == nil {
			err = os.Remove(f.Name()) // what is kept by the handle alone cannot be left behind
			s.file = f
		}
		if err != nil {
			return fmt.Errorf("keep pictures: %w", err)
		}
	}
	digest, text := sha256.New(), &stringReader{in: s.in}
	n, err := s.decode(text, digest)
	p := picture{kind: kind, data: io.NewSectionReader(s.file, s.size, n)}
	s.size += n
	_, corrupt := errors.AsType[base64.CorruptInputError](err)
	if corrupt || text.ended && errors.Is(err, io.ErrUnexpectedEOF) {
		p.err = err
		_, err = io.Copy(io.Discard, text)
	}
	if err != nil {
		return err
	}
	s.inString = false
	fmt.Fprintf(&s.out, "%s%d,%s\"", reference, len(s.pictures), hex.EncodeToString(digest.Sum(nil)))
	s.pictures = append(s.pictures, p)
	return nil
}

// decode appends what text is in base64 to the file, and returns how many bytes that is.
func (s *spool) decode(text io.Reader, digest io.Writer) (int64, error) {
	file := io.NewOffsetWriter(s.file, s.size)
	n, err := io.Copy(io.MultiWriter(file, digest), base64.NewDecoder(base64.StdEncoding, text))
	if err != nil {
		err = fmt.Errorf("keep pictures: %w", err)
	}
	return n, err
}

// A stringReader yields what a JSON string says, up to its end. Of escapes it
// knows those that encoders make of base64.
type stringReader struct {
	in    *bufio.Reader
	ended bool // by its quote
}

// Read implements [io.Reader].
func (r *stringReader) Read(p []byte) (int, error) {
	if r.ended || len(p) == 0 {
		return 0, io.EOF
	}
	if _, err := r.in.Peek(1); err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	ahead, _ := r.in.Peek(min(len(p), r.in.Buffered())) // so much is there
	if end := bytes.IndexByte(ahead, '"'); end >= 0 {
		ahead = ahead[:end]
	}
	if end := bytes.IndexByte(ahead, '\\'); end >= 0 {
		ahead = ahead[:end]
	}
	if n := copy(p, ahead); n > 0 {
		_, _ = r.in.Discard(n) // it was peeked at
		return n, nil
	}
	if c, _ := r.in.ReadByte(); c == '"' { // it was peeked at, too
		r.ended = true
		return 0, io.EOF
	}
	var err error
	p[0], err = r.unescape()
	return 1, err
}

// unescape returns the byte that is meant by what follows a backslash.
func (r *stringReader) unescape() (byte, error) {
	c, err := r.in.ReadByte()
	switch {
	case err != nil:
		return 0, io.ErrUnexpectedEOF
	case c == 'n' || c == 'r':
		return '\n', nil // which the decoder skips
	case c != 'u':
		return c, nil
	}
	digits := make([]byte, 4)
	if _, err := io.ReadFull(r.in, digits); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	code, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || code > 127 {
		return '!', nil // no base64
	}
	return byte(code), nil
}
