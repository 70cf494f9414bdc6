// Package configpages has the page on which owners edit config.json: with the checks that the program makes of it, the
// differences before it is saved, and its earlier texts. Secrets that stand in the file are neither shown nor kept.
package configpages

import (
	"embed"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
	"parley/lazyregexp"
	"parley/response"
	"parley/store"
	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

// Pages serves the page and its API.
type Pages struct {
	File  *File
	First string // the text that a new file begins with
	// Check says what is wrong with a text, or what it would change. It is given all secrets, and shows none.
	Check func(text string) Verdict
	Zone  *time.Location               // of times that people are shown
	Audit func(kind, who, what string) // receives events for the audit log (R-S27), without what the file says
}

// A Verdict is what the program says of a text.
type Verdict struct {
	Faults   []Fault  `json:"faults"`   // with any, the text cannot be used
	Warnings []string `json:"warnings"` // what is insecure or out of date
	Changed  []string `json:"changed"`  // keys that take effect at once
	Restart  []string `json:"restart"`  // keys that wait for the next start
}

// A Fault is one thing that is wrong with a text.
type Fault struct {
	Line   int    `json:"line,omitempty"` // from 1; 0: of no line
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"` // what is wrong, and what to do
}

var place = lazyregexp.New(`^(\d+):(\d+): `)

// FaultsOf returns the faults that err names, one on each line as file:line:column: text.
func FaultsOf(file string, err error) (all []Fault) {
	for line := range strings.Lines(err.Error()) {
		text := strings.TrimPrefix(strings.TrimSpace(line), file+":")
		f := Fault{Text: text}
		if m := place.FindStringSubmatch(text); m != nil {
			f.Line, _ = strconv.Atoi(m[1]) // they are numbers
			f.Column, _ = strconv.Atoi(m[2])
			f.Text = strings.TrimPrefix(text, m[0])
		}
		all = append(all, f)
	}
	return all
}

const (
	pagePath = "/owner/config"
	apiPath  = "/api/config"
)

// Routes implements layout.Pages.
func (p *Pages) Routes() []layout.Route {
	return append(layout.Assets(assets),
		layout.Route{Pattern: "GET " + pagePath, Handle: p.page},
		layout.Route{Pattern: "GET " + apiPath, Handle: p.show},
		layout.Route{Pattern: "POST " + apiPath, Handle: p.save},
		layout.Route{Pattern: "POST " + apiPath + "/check", Handle: p.check},
		layout.Route{Pattern: "GET " + apiPath + "/versions/{id}", Handle: p.version},
	)
}

// A state is the file with its history.
type state struct {
	File string `json:"file"`
	Text
	Versions []Version `json:"versions"` // the latest first
}

func (p *Pages) state() (s state, err error) {
	s.File = p.File.Path
	if s.Text, err = p.File.Read(); err != nil {
		return s, err
	}
	s.Versions, err = p.File.Versions()
	return s, err
}

func (p *Pages) show(w http.ResponseWriter, _ *http.Request, _ chat.Sender) error {
	s, err := p.state()
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, s)
	return nil
}

func (p *Pages) version(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	text, err := p.File.Version(r.PathValue("id"))
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, map[string]string{"text": text})
	return nil
}

// A review is what the program says of a text, and how it differs from the file.
type review struct {
	Verdict
	Diff string `json:"diff"`
}

func (p *Pages) check(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	var ask struct {
		Text string `json:"text"`
	}
	if err := response.ReadJSON(w, r, 2*maxText, &ask); err != nil {
		return err
	}
	now, err := p.File.Read()
	if err != nil {
		return err
	}
	to := p.File.fill(ask.Text, now)
	diff := udiff.Unified("now", "then", now.Text, p.File.hide(to.text))
	response.JSON(w, http.StatusOK, review{p.judge(to), diff})
	return nil
}

// judge returns what Check says of a text, with lists that are never nil.
func (p *Pages) judge(to filling) Verdict {
	v := Verdict{Faults: []Fault{{Text: "the text is too long"}}}
	if len(to.text) <= maxText {
		v = p.Check(to.text)
	}
	faults := append([]Fault{}, to.missing...)
	for _, fault := range v.Faults {
		faults = append(faults, to.shown(fault))
	}
	v.Faults = faults
	v.Warnings = append([]string{}, v.Warnings...)
	v.Changed = append([]string{}, v.Changed...)
	v.Restart = append([]string{}, v.Restart...)
	return v
}

var errChanged = response.Problem{
	Status: http.StatusConflict,
	Text: "the file was changed in the meantime, so nothing was saved: copy what you wrote, reload the page, " +
		"and make your change there",
}

// save saves a text that has no faults, and answers with what it changes.
func (p *Pages) save(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	var ask struct {
		Base string `json:"base"`
		Text string `json:"text"`
	}
	if err := response.ReadJSON(w, r, 2*maxText, &ask); err != nil {
		return err
	}
	now, err := p.File.Read()
	if err != nil {
		return err
	}
	if now.Sum != ask.Base {
		return errChanged
	}
	v := p.judge(p.File.fill(ask.Text, now))
	if len(v.Faults) > 0 {
		f := v.Faults[0]
		text := f.Text
		if f.Line > 0 {
			text = "line " + strconv.Itoa(f.Line) + ", column " + strconv.Itoa(f.Column) + ": " + text
		}
		return response.BadRequest("nothing was saved: " + text)
	}
	err = p.File.Save(ask.Base, ask.Text)
	if errors.Is(err, store.ErrConflict) {
		return errChanged
	}
	if err != nil {
		return response.Problem{Status: http.StatusConflict, Text: "nothing was saved: " + err.Error()}
	}
	keys := strings.Join(append(v.Changed, v.Restart...), ", ")
	p.Audit("config", by.ID, "config.json saved on the owner's page: "+keys)
	response.JSON(w, http.StatusOK, v)
	return nil
}
