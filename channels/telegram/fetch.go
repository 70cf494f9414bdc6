package telegram

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/chat"
	"parley/workspace"
)

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
		err := fmt.Errorf("telegram hands no file over 20 MB to a bot: %w", workspace.ErrTooBig)
		return nil, &channels.Error{Permanent: true, Err: err}
	case saidBad(err, "temporarily unavailable"):
		return nil, c.plainly("get file", err)
	case err != nil:
		return nil, c.refused("get file", err)
	}
	link := c.cfg.APIURL + "/file/bot" + c.cfg.Token + "/" + (&url.URL{Path: got.FilePath}).EscapedPath()
	return channels.Download(ctx, c.http.Client, link)
}
