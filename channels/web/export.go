package web

import (
	"mime"
	"net/http"
	"time"

	"parley/channels/safetext"
	"parley/channels/web/export"
	"parley/response"
)

// exportConversation sends a conversation of the person, as Markdown or as JSON.
func exportConversation(req request) error {
	form := req.r.PathValue("form")
	if form != "md" && form != "json" {
		return response.Problem{Status: http.StatusNotFound, Text: "A conversation is exported as md or as json."}
	}
	b, err := req.room.read(req.r.Context())
	if err != nil {
		return err
	}
	all := export.Conversation{
		Title:    displayTitle(req.room.address.Thread, req.conversation),
		Exported: time.Now(),
		Messages: b.export(),
	}
	name := safetext.FileName(all.Title + "." + form)
	req.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	req.w.Header().Set("Cache-Control", "no-store")
	if form == "json" {
		return req.writeJSON(http.StatusOK, all)
	}
	req.writeBody("text/markdown; charset=utf-8", []byte(all.Markdown()))
	return nil
}

// export returns the messages and answers of all branches.
func (b *branchReader) export() []export.Entry {
	shown := map[uint64]bool{}
	for _, e := range b.shown() {
		shown[e.Seq] = true
	}
	all := []export.Entry{}
	for _, e := range b.all {
		if e.Again || e.Who == whoSwitch {
			continue
		}
		x := export.Entry{Number: e.Seq, Who: e.Who, Time: e.Time, Text: e.card().Text(e.Text), Shown: shown[e.Seq]}
		for _, f := range e.Files {
			x.Files = append(x.Files, f.Name)
		}
		if versions, which := b.versionsOf(e); len(versions) > 0 {
			x.Of = versions
			x.Version = which + 1
		}
		all = append(all, x)
	}
	return all
}
