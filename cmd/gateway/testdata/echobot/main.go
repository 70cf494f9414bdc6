// Echobot is the least that answers on Telegram with go-telegram/bot: the limit
// that the benchmarks of the gateway are held against. With MODEL_URL it says
// what a model streams to it, else what it was told.
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	"github.com/sashabaranov/go-openai"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 64
	config := openai.DefaultConfig(os.Getenv("MODEL_KEY"))
	config.BaseURL = os.Getenv("MODEL_URL")
	config.HTTPClient = &http.Client{Transport: transport}
	model := openai.NewClientWithConfig(config)

	answer := func(ctx context.Context, b *bot.Bot, u *models.Update) {
		if u.Message == nil {
			return
		}
		text := u.Message.Text
		if config.BaseURL != "" {
			var err error
			if text, err = ask(ctx, model, text); err != nil {
				log.Print(err)
			}
		}
		if _, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: u.Message.Chat.ID, Text: cmp.Or(text, "?")}); err != nil {
			log.Print(err)
		}
	}
	b, err := bot.New(os.Getenv("BOT_TOKEN"), bot.WithServerURL(os.Getenv("BOT_URL")), bot.WithSkipGetMe(),
		bot.WithHTTPClient(time.Minute, &http.Client{Transport: transport}), bot.WithDefaultHandler(answer))
	if err != nil {
		log.Fatal(err)
	}
	b.Start(ctx)
}

func ask(ctx context.Context, model *openai.Client, text string) (string, error) {
	s, err := model.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: "gpt-test", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: text}},
	})
	if err != nil {
		return "", err
	}
	defer s.Close()
	var all strings.Builder
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		for _, c := range r.Choices {
			all.WriteString(c.Delta.Content)
		}
	}
}
