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

// A picture is an image of a request in a spool.
type picture struct {
	kind string // as the client declares it
	data *io.SectionReader
	err  error // why it cannot be read
}

// pictureTypes are the types that models can be shown.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// contentType returns the type of p, detected from its content. The error is for
// the client.
func (p picture) contentType() (string, error) {
	head := make([]byte, 512)
	n, _ := p.data.ReadAt(head, 0) // it may be shorter
	kind := http.DetectContentType(head[:n])
	if p.err != nil || !slices.Contains(pictureTypes, kind) {
		return "", fmt.Errorf("an image of type %.40q cannot be read; it must be PNG, JPEG, GIF or WebP", p.kind)
	}
	return kind, nil
}

// A spool is a reader that takes the pictures out of a JSON request, which may be
// many megabytes, and writes them to a file while it reads. It replaces each data
// URL that is the value of a key "url" with a reference to the picture.
type spool struct {
	in       *bufio.Reader
	dir      string   // of the file
	file     *os.File // nil until needed; it has no name
	size     int64    // of file
	pictures []picture

	output   bytes.Buffer // to be read
	inString bool
	escaped  bool   // the previous byte was a backslash
	last     []byte // the beginning of the last string
	before   byte   // the last non-space byte outside strings
	err      error
}

const (
	reference   = "data:parley-picture," // followed by number and digest, so that equal requests stay equal
	maxDataHead = 256                    // bytes of a data URL before its content
)

func newSpool(r io.Reader, dir string) *spool {
	return &spool{in: bufio.NewReaderSize(r, 32<<10), dir: dir}
}

// close deletes the pictures.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // errors of a file that is gone do not matter
	}
}

// picture returns the picture that url refers to. The error is for the client. Other
// URLs are not fetched: a client could reach addresses of our network (R-S19).
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
	for s.output.Len() < len(p) && s.err == nil {
		s.err = s.readNext()
	}
	if s.output.Len() == 0 {
		return 0, s.err
	}
	return s.output.Read(p)
}

// readNext reads one byte or one picture.
func (s *spool) readNext() error {
	c, err := s.in.ReadByte()
	if err != nil {
		return err
	}
	s.output.WriteByte(c)
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
			return s.takePicture(kind)
		}
	case c != ' ' && c != '\t' && c != '\n' && c != '\r':
		s.before = c
	}
	return nil
}

// dataHead returns the type of the data URL that comes next and the number of bytes
// before its content, 0 if none comes.
func (s *spool) dataHead() (kind string, n int) {
	ahead, _ := s.in.Peek(maxDataHead) // there are fewer near the end
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

// openFile creates the file, without a name: it is gone with its handle.
func (s *spool) openFile() error {
	f, err := os.CreateTemp(s.dir, ".upload-*")
	if err != nil {
		return err
	}
	s.file = f
	return os.Remove(f.Name())
}

// takePicture reads a picture, whose data URL has begun, into the file, and replaces
// it with its reference.
func (s *spool) takePicture(kind string) error {
	if s.file == nil {
		if err := s.openFile(); err != nil {
			return fmt.Errorf("store images of a request: %w", err)
		}
	}
	digest, text := sha256.New(), &base64Reader{in: s.in}
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
	fmt.Fprintf(&s.output, "%s%d,%s\"", reference, len(s.pictures), hex.EncodeToString(digest.Sum(nil)))
	s.pictures = append(s.pictures, p)
	return nil
}

// decode appends the decoded text to the file and returns the number of bytes.
func (s *spool) decode(text io.Reader, digest io.Writer) (int64, error) {
	file := io.NewOffsetWriter(s.file, s.size)
	n, err := io.Copy(io.MultiWriter(file, digest), base64.NewDecoder(base64.StdEncoding, text))
	if err != nil {
		err = fmt.Errorf("store images of a request: %w", err)
	}
	return n, err
}

// A base64Reader reads the content of a JSON string up to its end. It knows the
// escapes that encoders use for characters of base64.
type base64Reader struct {
	in    *bufio.Reader
	ended bool // its closing quote was read
}

// Read implements [io.Reader].
func (r *base64Reader) Read(p []byte) (int, error) {
	if r.ended || len(p) == 0 {
		return 0, io.EOF
	}
	if _, err := r.in.Peek(1); err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	ahead, _ := r.in.Peek(min(len(p), r.in.Buffered())) // does not block
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
	if c, _ := r.in.ReadByte(); c == '"' { // it was peeked at
		r.ended = true
		return 0, io.EOF
	}
	var err error
	p[0], err = r.unescape()
	return 1, err
}

// unescape returns the byte that the escape sequence after a backslash stands for.
func (r *base64Reader) unescape() (byte, error) {
	c, err := r.in.ReadByte()
	switch {
	case err != nil:
		return 0, io.ErrUnexpectedEOF
	case c == 'n' || c == 'r':
		return '\n', nil // the decoder skips it
	case c != 'u':
		return c, nil
	}
	digits := make([]byte, 4)
	if _, err := io.ReadFull(r.in, digits); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	code, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || code > 127 {
		return '!', nil // which is not base64
	}
	return byte(code), nil
}
