package web

import (
	"slices"
	"strings"

	"parley/channels/web/filekind"
	"parley/channels/web/parts"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// fileList returns files as the page shows them: pictures and what can be played as such, others as cards.
func fileList(files []fileLink) g.Node {
	return h.Ul(h.Class("files"), g.Map(files, func(f fileLink) g.Node {
		return h.Li(h.Data("kind", f.kind()), f.node())
	}))
}

// node returns f. The address of a file that can be looked into is of its own origin, in a sandbox, so
// that nothing in it acts (R-S5): see downloadFile.
func (f fileLink) node() g.Node {
	switch f.kind() {
	case filekind.Picture:
		return h.A(h.Class("picture"), h.Href(f.URL), h.Target("_blank"), g.Attr("data-size", size(f.Size)),
			h.Img(h.Src(f.URL), h.Alt(f.Name), h.Loading("lazy")))
	case filekind.Audio:
		return g.Group{h.Audio(h.Controls(), h.Preload("metadata"), h.Src(f.URL), h.Aria("label", f.Name)), f.card()}
	case filekind.Video:
		return g.Group{
			h.Video(h.Controls(), h.Preload("metadata"), g.Attr("playsinline"), h.Src(f.URL), h.Aria("label", f.Name)),
			f.card(),
		}
	}
	return f.card()
}

// card returns a link that downloads f.
func (f fileLink) card() g.Node {
	return h.A(h.Class("card"), h.Href(f.URL), h.Download(f.Name),
		parts.Icon("file"),
		h.Span(g.Text(f.Name)),
		h.Small(g.Text(size(f.Size))),
	)
}

// kind says how the page shows f.
func (f fileLink) kind() string {
	if slices.Contains(filekind.Pictures, f.Type) {
		return filekind.Picture
	}
	return filekind.Of(f.Name, f.Type)
}

// renderNode returns n as HTML.
func renderNode(n g.Node) safeHTML {
	var b strings.Builder
	_ = n.Render(&b) // what is rendered in memory does not fail
	return safeHTML(b.String())
}
