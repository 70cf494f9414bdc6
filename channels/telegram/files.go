package telegram

import (
	"cmp"
	"context"
	"errors"
	"html"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/workspace"
)

// What Telegram takes from bots.
const (
	maxUpload  = 50 << 20 // bytes of a file
	maxPhoto   = 10 << 20 // bytes of what is shown as a photo
	maxAlbum   = 10       // files in one
	maxCaption = 500      // runes, which are at most 1000 UTF-16 units of 1024
)

// forms tells how Telegram shows a file, by the ending of its name or by its type.
var forms = map[string]string{
	".jpg": "photo", ".jpeg": "photo", ".png": "photo", ".webp": "photo", "image/jpeg": "photo", "image/png": "photo", "image/webp": "photo",
	".mp4": "video", "video/mp4": "video", ".mp3": "audio", ".m4a": "audio", "audio/mpeg": "audio", "audio/mp4": "audio",
	".ogg": "voice", ".oga": "voice", ".opus": "voice", "audio/ogg": "voice", "audio/opus": "voice",
}

func formOf(f chat.File) string {
	return cmp.Or(forms[strings.ToLower(path.Ext(f.Path))], forms[f.Type], "document")
}

// shelves says what can be in one album: photos with videos, documents, music.
var shelves = map[string]string{"photo": "photo", "video": "photo", "document": "document", "audio": "audio"}

// Group puts together what follows each other and can be in one album.
func (c *Channel) Group(files []chat.File) (all [][]chat.File) {
	for _, f := range files {
		last, shelf := len(all)-1, shelves[formOf(f)]
		if last >= 0 && len(all[last]) < maxAlbum && shelf != "" && shelf == shelves[formOf(all[last][0])] {
			all[last] = append(all[last], f)
		} else {
			all = append(all, []chat.File{f})
		}
	}
	return all
}

// sendFiles sends files in one message or one album and returns the ids of what
// was sent. Of those that cannot be sent it tells. What Telegram does not
// take as a photo, say, goes once more as a document.
func (c *Channel) sendFiles(ctx context.Context, to target, files []chat.File, as string) (ids []int, err error) {
	ups, lost := network.OpenAll(c.cfg.Texts.Files, files, maxUpload, c.cfg.Open, c.log)
	defer func() {
		for _, u := range ups {
			u.File.Close()
		}
	}()
	if len(ups) == 0 {
		return c.sendText(ctx, to, html.EscapeString(lost), nil)
	}
	err = c.inTurn(ctx, to.chat, func() (err error) {
		ids, err = c.post(ctx, to, ups, as, channels.Clip(lost, maxCaption))
		return err
	})
	if as != "document" && errors.Is(err, bot.ErrorBadRequest) {
		c.log.Warn("telegram does not take a file as what it is, which goes as a document", "chat", to.chat, "err", c.plainly("send", err))
		return c.sendFiles(ctx, to, files, "document")
	}
	return ids, err
}

// post sends ups, with a caption, in one request: as what they are if as is empty.
func (c *Channel) post(ctx context.Context, to target, ups []network.Upload, as, caption string) ([]int, error) {
	if len(ups) > 1 {
		return c.postAlbum(ctx, to, ups, as, caption)
	}
	var sent *models.Message
	var err error
	file := &models.InputFileUpload{Filename: ups[0].Name, Data: ups[0].File}
	switch cmp.Or(as, shownAs(ups[0])) {
	case "photo":
		sent, err = c.api.SendPhoto(ctx, &bot.SendPhotoParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Photo: file})
	case "video":
		sent, err = c.api.SendVideo(ctx, &bot.SendVideoParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Video: file})
	case "audio":
		sent, err = c.api.SendAudio(ctx, &bot.SendAudioParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Audio: file})
	case "voice":
		sent, err = c.api.SendVoice(ctx, &bot.SendVoiceParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Voice: file})
	default:
		sent, err = c.api.SendDocument(ctx, &bot.SendDocumentParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Document: file})
	}
	return idsOf(sent), err
}

// shownAs is the form of u, which as a photo must not be too large.
func shownAs(u network.Upload) string {
	if form := formOf(u.Of); form != "photo" || u.Size <= maxPhoto {
		return form
	}
	return "document"
}

func (c *Channel) postAlbum(ctx context.Context, to target, ups []network.Upload, as, caption string) ([]int, error) {
	p := &bot.SendMediaGroupParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote}
	for _, u := range ups {
		var m models.InputMedia
		switch at := "attach://" + u.Name; cmp.Or(as, shownAs(u)) {
		case "photo":
			m = &models.InputMediaPhoto{Media: at, MediaAttachment: u.File, Caption: caption}
		case "video":
			m = &models.InputMediaVideo{Media: at, MediaAttachment: u.File, Caption: caption}
		case "audio":
			m = &models.InputMediaAudio{Media: at, MediaAttachment: u.File, Caption: caption}
		default:
			m = &models.InputMediaDocument{Media: at, MediaAttachment: u.File, Caption: caption}
		}
		p.Media, caption = append(p.Media, m), ""
	}
	sent, err := c.api.SendMediaGroup(ctx, p)
	return idsOf(sent...), err
}

// fileKinds are the kinds of content that are files, with the types of those
// that come without.
var fileKinds = map[string]string{
	"photo": "image/jpeg", "animation": "video/mp4", "voice": "audio/ogg", "video_note": "video/mp4",
	"video": "video/mp4", "audio": "audio/mpeg", "document": "", "sticker": "image/webp",
}

// filesIn returns the file that a thing is, if it is one. Stickers that move are none.
func filesIn(kind string, thing any) []chat.File {
	if sizes, ok := thing.([]any); ok && len(sizes) > 0 { // of a photo: the largest comes last
		thing = sizes[len(sizes)-1]
	}
	of, _ := thing.(map[string]any)
	text := func(key string) string { s, _ := of[key].(string); return s }
	usual, ok := fileKinds[kind]
	if !ok || text("file_id") == "" || of["is_animated"] == true || of["is_video"] == true {
		return nil
	}
	size, _ := of["file_size"].(float64)
	return []chat.File{{
		Ref: text("file_id"), Name: text("file_name"), Type: cmp.Or(text("mime_type"), usual),
		Size: int64(size), Voice: kind == "voice",
	}}
}

// Fetch implements [channels.Fetcher]. The link that Telegram gives for a file
// holds the token and ends after an hour, so it is asked for each time.
func (c *Channel) Fetch(ctx context.Context, _ chat.Message, f chat.File) (io.ReadCloser, error) {
	got, err := c.api.GetFile(ctx, &bot.GetFileParams{FileID: f.Ref})
	switch {
	case saidBad(err, "file is too big"):
		return nil, channels.ForGood("telegram hands no file over 20 MB to a bot: %w", workspace.ErrTooBig)
	case saidBad(err, "temporarily unavailable"):
		return nil, c.plainly("get file", err)
	case err != nil:
		return nil, c.refused("get file", err)
	}
	link := c.cfg.APIURL + "/file/bot" + c.cfg.Token + "/" + (&url.URL{Path: got.FilePath}).EscapedPath()
	return network.Download(ctx, c.http.Client, link)
}
