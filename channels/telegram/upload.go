package telegram

import (
	"cmp"
	"context"
	"errors"
	"html"
	"path"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels/network"
	"parley/chat"
)

// What Telegram takes from bots.
const (
	maxUpload  = 50 << 20 // bytes of a file
	maxPhoto   = 10 << 20 // bytes of a file shown as a photo
	maxAlbum   = 10       // files
	maxCaption = 500      // runes: at most 1000 of the 1024 UTF-16 units
)

// A form is how Telegram shows a file.
type form string

const (
	photo    form = "photo"
	video    form = "video"
	audio    form = "audio"
	voice    form = "voice"
	document form = "document"
)

// forms are the forms of files by the extension of the name or by the media type.
var forms = map[string]form{
	".jpg":       photo,
	".jpeg":      photo,
	".png":       photo,
	".webp":      photo,
	"image/jpeg": photo,
	"image/png":  photo,
	"image/webp": photo,
	".mp4":       video,
	"video/mp4":  video,
	".mp3":       audio,
	".m4a":       audio,
	"audio/mpeg": audio,
	"audio/mp4":  audio,
	".ogg":       voice,
	".oga":       voice,
	".opus":      voice,
	"audio/ogg":  voice,
	"audio/opus": voice,
}

func formOf(f chat.File) form {
	return cmp.Or(forms[strings.ToLower(path.Ext(f.Path))], forms[f.Type], document)
}

// uploadForm returns the form of u. Photos that are too large are documents.
func uploadForm(u network.Upload) form {
	f := formOf(u.Of)
	if f == photo && u.Size > maxPhoto {
		return document
	}
	return f
}

// albumKinds says which forms can share an album: photos with videos, documents
// with documents, music with music.
var albumKinds = map[form]string{photo: "visual", video: "visual", document: "document", audio: "audio"}

// groupAlbums puts consecutive files that can share an album together.
func groupAlbums(files []chat.File) (groups [][]chat.File) {
	lastKind := ""
	for _, f := range files {
		kind := albumKinds[formOf(f)]
		last := len(groups) - 1
		if last >= 0 && len(groups[last]) < maxAlbum && kind != "" && kind == lastKind {
			groups[last] = append(groups[last], f)
			continue
		}
		groups = append(groups, []chat.File{f})
		lastKind = kind
	}
	return groups
}

// sendFiles sends files in one message or one album and returns the numbers of
// what was sent. The caption names those that cannot be sent. If Telegram does not
// accept a file in its form, it is sent once more as a document. as is the form of
// all files, or "" for each in its own.
func (s *sender) sendFiles(ctx context.Context, to target, files []chat.File, as form) (sent []int, err error) {
	uploads, lost := network.OpenAll(s.texts.Files, files, maxUpload, s.open, s.log)
	defer func() {
		for _, u := range uploads {
			u.File.Close()
		}
	}()
	if len(uploads) == 0 {
		return s.sendText(ctx, to, html.EscapeString(lost), nil)
	}
	caption := chat.Shorten(lost, maxCaption)
	err = s.paced(ctx, to.chat, func() (err error) {
		if len(uploads) > 1 {
			sent, err = s.sendAlbum(ctx, to, uploads, as, caption)
		} else {
			sent, err = s.sendFile(ctx, to, uploads[0], as, caption)
		}
		return err
	})
	if as != document && errors.Is(err, bot.ErrorBadRequest) {
		s.log.Warn("telegram rejected a file, sending it as a document",
			"chat", to.chat, "err", s.api.redactedError("send", err))
		return s.sendFiles(ctx, to, files, document)
	}
	return sent, err
}

func (s *sender) sendFile(
	ctx context.Context, to target, u network.Upload, as form, caption string,
) (sent []int, err error) {
	var message *models.Message
	file := &models.InputFileUpload{Filename: u.Name, Data: u.File}
	switch cmp.Or(as, uploadForm(u)) {
	case photo:
		message, err = s.api.bot.SendPhoto(ctx, &bot.SendPhotoParams{
			ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Photo: file,
		})
	case video:
		message, err = s.api.bot.SendVideo(ctx, &bot.SendVideoParams{
			ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Video: file,
		})
	case audio:
		message, err = s.api.bot.SendAudio(ctx, &bot.SendAudioParams{
			ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Audio: file,
		})
	case voice:
		message, err = s.api.bot.SendVoice(ctx, &bot.SendVoiceParams{
			ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Voice: file,
		})
	default:
		message, err = s.api.bot.SendDocument(ctx, &bot.SendDocumentParams{
			ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote, Caption: caption, Document: file,
		})
	}
	return numbersOf(message), err
}

func (s *sender) sendAlbum(
	ctx context.Context, to target, uploads []network.Upload, as form, caption string,
) ([]int, error) {
	p := &bot.SendMediaGroupParams{ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote}
	for _, u := range uploads {
		p.Media = append(p.Media, newInputMedia(u, as, caption))
		caption = "" // only the first file has it
	}
	sent, err := s.api.bot.SendMediaGroup(ctx, p)
	return numbersOf(sent...), err
}

// newInputMedia returns u as a part of an album.
func newInputMedia(u network.Upload, as form, caption string) models.InputMedia {
	media := "attach://" + u.Name
	switch cmp.Or(as, uploadForm(u)) {
	case photo:
		return &models.InputMediaPhoto{Media: media, MediaAttachment: u.File, Caption: caption}
	case video:
		return &models.InputMediaVideo{Media: media, MediaAttachment: u.File, Caption: caption}
	case audio:
		return &models.InputMediaAudio{Media: media, MediaAttachment: u.File, Caption: caption}
	}
	return &models.InputMediaDocument{Media: media, MediaAttachment: u.File, Caption: caption}
}
