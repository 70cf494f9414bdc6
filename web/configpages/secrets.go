package configpages

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"parley/lazyregexp"
)

// A Secret is one that stands in a text of the file.
type Secret struct {
	Start, End int    // offsets of the JSON text, with its quotes
	Value      string // what it says
}

// A mask stands for a secret wherever a text is shown or kept: "••••1f3a #x7Kq" has its last four characters (R-S6),
// and a fingerprint that only this installation can make. So it stands for one secret, in whatever place and text.
var mask = lazyregexp.New(`"••••[^"\n]*"`)

const (
	fingerprintKey = "key" // a file in the folder of earlier texts
	keySize        = 32    // bytes
	shownOf        = 12    // characters that a secret must have for its last four to be shown
)

var harmless = lazyregexp.New(`^[A-Za-z0-9_+/=.-]{4}$`) // as the last four characters

// maskOf returns the mask of a secret, with its quotes.
func (f *File) maskOf(s Secret) string {
	mac := hmac.New(sha256.New, f.fingerprintKey())
	mac.Write([]byte(s.Value))
	last := s.Value[max(len(s.Value)-4, 0):]
	if utf8.RuneCountInString(secretPart(s.Value)) < shownOf || !harmless.MatchString(last) {
		last = ""
	}
	return `"••••` + last + " #" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:3]) + `"`
}

// secretPart returns what of value may be the secret, as after "--api-key=" or in the path of an address: its end.
func secretPart(value string) string {
	bare := strings.TrimRight(value, "=") // as base64 ends
	return bare[strings.LastIndexAny(bare, "=:/?&# ")+1:]
}

// fingerprintKey returns what fingerprints are made with. It lasts, as earlier texts do. Where it cannot be kept, the
// masks of those stand for nothing after a restart, which whoever wants them back is told.
func (f *File) fingerprintKey() []byte {
	f.keyed.Do(func() {
		path := filepath.Join(f.History, fingerprintKey)
		key, err := os.ReadFile(path)
		f.key = key
		if err == nil && len(key) == keySize {
			return
		}
		f.key = make([]byte, keySize)
		_, _ = rand.Read(f.key) // it never fails
		if err := os.MkdirAll(f.History, 0o700); err != nil {
			return
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		_ = write(path, string(f.key)) // see above
	})
	return f.key
}

// secrets returns the secrets that stand in text, but no masks.
func (f *File) secrets(text string) (all []Secret) {
	if f.Secrets == nil {
		return nil
	}
	for _, s := range f.Secrets(text) {
		if !mask.MatchString(text[s.Start:s.End]) {
			all = append(all, s)
		}
	}
	return all
}

// hide returns text with masks in the place of its secrets.
func (f *File) hide(text string) string {
	var b strings.Builder
	end := 0
	for _, s := range f.secrets(text) {
		b.WriteString(text[end:s.Start] + f.maskOf(s))
		end = s.End
	}
	return b.String() + text[end:]
}

// A filling is a text with the secrets of the file in the place of their masks.
type filling struct {
	text    string
	places  []filled
	missing []Fault // masks that stand for no secret of the file, or where none belongs
}

// A filled is a place of a filling where the text that was filled has a mask, in characters.
type filled struct {
	start         int // offset, in bytes
	line, column  int // from 1
	secret, masks int // the length of what stands there, and that of the mask
}

// fill returns text, which has masks, with the secrets of now. A mask that somebody put where no secret belongs stays
// one: what is there may be shown, by what is told of a fault if not by the page.
func (f *File) fill(text string, now Text) filling {
	misplaced := map[int]bool{} // masks by their numbers
	for {
		to := f.fillBut(misplaced, text, now)
		secret := map[int]bool{}
		for _, s := range f.secrets(to.text) {
			secret[s.Start] = true
		}
		before := len(misplaced)
		for n, p := range to.places {
			if !secret[p.start] {
				misplaced[n] = true
			}
		}
		if len(misplaced) == before {
			return to
		}
	}
}

// fillBut is fill, but for the masks with these numbers.
func (f *File) fillBut(misplaced map[int]bool, text string, now Text) (to filling) {
	secrets := map[string]string{}
	for _, s := range f.secrets(now.whole) {
		secrets[f.maskOf(s)] = now.whole[s.Start:s.End]
	}
	var b strings.Builder
	end := 0
	for n, m := range mask.FindAllStringIndex(text, -1) {
		shown := text[m[0]:m[1]]
		secret, is := secrets[shown]
		b.WriteString(text[end:m[0]])
		end = m[1]
		line, column := placeOf(b.String())
		what := ""
		switch {
		case !is:
			what = "the secret that stood here is not in the file any more, and earlier texts keep none: " +
				"write it again, or ${NAME} in its place"
		case misplaced[n]:
			what = "a secret cannot stand here, where it would be shown: take it away"
		}
		if what != "" {
			shownLine, shownColumn := placeOf(text[:m[0]])
			to.missing = append(to.missing, Fault{shownLine, shownColumn, what})
			secret = shown
		}
		long, short := utf8.RuneCountInString(secret), utf8.RuneCountInString(shown)
		to.places = append(to.places, filled{b.Len(), line, column, long, short})
		b.WriteString(secret)
	}
	to.text = b.String() + text[end:]
	return to
}

// placeOf returns the line and the column of what comes after text.
func placeOf(text string) (line, column int) {
	return strings.Count(text, "\n") + 1, utf8.RuneCountInString(text[strings.LastIndex(text, "\n")+1:]) + 1
}

// shown returns a fault of the filled text where it is in the text with masks.
func (to filling) shown(fault Fault) Fault {
	longer := 0 // characters that the secrets before it have more than their masks
	for _, p := range to.places {
		switch {
		case p.line != fault.Line || p.column >= fault.Column:
		case fault.Column < p.column+p.secret: // in a secret
			fault.Column = p.column - longer
			return fault
		default:
			longer += p.secret - p.masks
		}
	}
	fault.Column -= longer
	return fault
}
