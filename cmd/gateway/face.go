package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"parley/backup"
	"parley/channels/console"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/llm/openai"
	"parley/tools"
	"parley/web"
	"parley/web/observe"
)

// openFace makes the web face: its socket for whoever has the data folder, and
// its address for everybody else, unless there is none or this is a chat. It
// opens the addresses of hooks, which networks call, too.
func (h *house) openFace(ctx context.Context, hooks map[string]*http.ServeMux) error {
	c, addr := h.Config, cmp.Or(h.Config.HTTP.Listen, "localhost:0") // of a chat: where its links will lead
	var front net.Listener
	if c.HTTP.Listen != "" && !h.Chat {
		var err error
		if front, err = listenHTTP(ctx, c); err != nil {
			return err
		}
		addr = boundAs(c.HTTP.Listen, front.Addr())
		if !strings.HasSuffix(c.HTTP.Listen, ":0") && addr != c.HTTP.Listen {
			h.moved = fmt.Sprintf("%s is in use by another program, so the web page is at %s until the next start", c.HTTP.Listen, addr)
			h.Log.Warn("http.listen is in use by another program, so the web page has another port until the next start", "wanted", c.HTTP.Listen, "address", addr)
		}
	}
	cfg := web.Config{
		Listen: addr, PublicURL: c.HTTP.PublicURL, Token: string(c.HTTP.AdminToken), Version: version(), Zone: c.Zone(),
		Store: h.store, Gateway: h.ownerView(), Log: h.Log, Metrics: h.observer.Handler(), Audit: h.auditLog.Add, API: h.api.Serve,
	}
	if h.browser != nil {
		cfg.Chat = h.browser.Serve
	}
	var err error
	if h.web, err = web.New(cfg); err != nil {
		return err
	}
	if front != nil {
		h.door(front, h.web.HTTP(h.web.Handler()))
	}
	if h.Chat {
		return nil
	}
	socket, err := console.Listen(adminSocket(c))
	if err != nil {
		return err
	}
	h.door(socket, h.web.HTTP(h.web.Local()))
	for addr, mux := range hooks {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		s := h.web.HTTP(mux)
		s.ReadTimeout = 30 * time.Second
		h.door(l, s)
	}
	return nil
}

// listenHTTP listens where c says. If that is the default and another program is
// there, it listens at any free port: a first run must not end because of it.
// Whoever chose an address is told that it is taken.
func listenHTTP(ctx context.Context, c *config.Config) (net.Listener, error) {
	listen := (&net.ListenConfig{}).Listen
	l, err := listen(ctx, "tcp", c.HTTP.Listen)
	switch {
	case err == nil:
		return l, nil
	case !errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("http.listen: %w", err)
	case c.HTTP.Listen == config.DefaultListen && c.HTTP.PublicURL == "":
		if free, err := listen(ctx, "tcp", config.FreeListen); err == nil {
			return free, nil
		}
	}
	return nil, fmt.Errorf("http.listen: another program uses %s: end it, or choose another port in the config: %w", c.HTTP.Listen, err)
}

// door has s serve whoever comes by l, once the house lives.
func (h *house) door(l net.Listener, s *http.Server) {
	h.doors, h.served = append(h.doors, l), append(h.served, s)
}

// boundAs is the address that listen has become, under the name it has in the config.
func boundAs(listen string, bound net.Addr) string {
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(bound.String())
	return net.JoinHostPort(host, port)
}

// ownerView are what the owner's page looks at.
func (h *house) ownerView() web.Gateway {
	return web.Gateway{
		Conversations: web.Conversations{
			List:       h.pool.Talks,
			Transcript: h.pool.Transcript,
			Search:     h.pool.Search,
			Forget:     h.forgetSession,
			Recording:  h.pool.Recording,
		},
		DeadLetters: web.DeadLetters{
			Replies: h.parked, Resend: h.hub.Resend, Drop: h.hub.Drop,
			Messages: h.aside, Retry: h.pool.Again, Dismiss: h.pool.Dismiss,
		},
		Toolbox:  web.Toolbox{Tools: h.toolbox, Stats: h.stats, Calls: h.pool.Calls},
		Clock:    h.jobsAPI(),
		Notes:    h.mind.notes,
		Model:    func() string { return h.now.Load().Agent.Model },
		Reasons:  h.reasons,
		Warnings: h.warnings,
		Damaged:  h.verifier.Damaged,
		Channels: h.channels, Pairings: h.hub.Pairings, Approve: h.hub.Approve,
		Usage: h.pool.Usage, Price: h.price, Errors: h.Recent.Lines, Events: h.auditLog.Chain(), Backup: h.backup,
	}
}

// warningsOf are what an owner sees who asks how the gateway does.
func (h *house) warnings() []string {
	all := slices.Concat(h.toTell(), damageWarning(h.texts.Gateway.Report, h.verifier.Damaged()), warningsOf(h.now.Load()))
	if h.moved != "" {
		all = append(all, h.moved)
	}
	return all
}

// toolbox lists what an owner may use.
func (h *house) toolbox(ctx context.Context) ([]tools.Tool, error) {
	own, err := (*h.kit.Load())(ctx, tools.Scope{From: chat.Sender{Role: chat.Owner}, Model: h.now.Load().Agent.Model})
	if err != nil {
		return nil, err
	}
	return own.Tools(), nil
}

func (h *house) channels(ctx context.Context) (all []web.Channel, err error) {
	states, err := h.hub.Status(ctx)
	for _, s := range states {
		c := web.Channel{Name: s.Channel, Pending: s.Pending, Oldest: s.Oldest, Dropped: s.Dropped}
		if s.Err != nil {
			c.Trouble = h.redact(s.Err.Error())
		}
		all = append(all, c)
	}
	return all, err
}

func (h *house) parked(ctx context.Context) (all []web.DeadLetter, err error) {
	parked, err := h.hub.Parked(ctx)
	for _, p := range slices.Backward(parked) {
		all = append(all, web.DeadLetter{Key: p.Key, Session: p.Reply.To.Session(), Text: p.Reply.Text, Why: h.redact(p.Reason), Time: p.Time})
	}
	return all, err
}

func (h *house) aside(ctx context.Context) (all []web.DeadLetter, err error) {
	aside, err := h.pool.Aside(ctx)
	for _, a := range aside {
		m := a.Message
		all = append(all, web.DeadLetter{Key: a.Key, Session: m.Session(), Text: m.Text, Why: "the process ended over it, or it comes from a backup", Time: m.Time})
	}
	return all, err
}

// price returns what u cost, if the config has prices for model.
func (h *house) price(model string, u llm.Usage) (cost float64, known bool) {
	m := h.now.Load().Models[model]
	if m == nil || m.Price == nil {
		return 0, false
	}
	return (float64(u.In)*m.Price.Input + float64(u.Out)*m.Price.Output) / 1e6, true
}

// reasons say why the house does not do what it should.
func (h *house) reasons(ctx context.Context) (why []string) {
	states, err := h.hub.Status(ctx)
	if err != nil {
		return []string{"the store does not answer: " + h.redact(err.Error())}
	}
	if h.full.Load() || h.space.room() != nil {
		why = append(why, "the disk is full: nothing is accepted until there is space")
	}
	for _, s := range states {
		if s.Err != nil {
			why = append(why, s.Channel+": "+h.redact(s.Err.Error()))
		}
	}
	return why
}

// queues are what waits, for the metrics.
func (h *house) queues(ctx context.Context) (all []observe.Queue) {
	if s, err := h.pool.Status(ctx); err == nil {
		all = append(all, observe.Queue{Name: "inbox", Depth: s.Waiting, Oldest: s.Oldest})
	}
	if states, err := h.hub.Status(ctx); err == nil {
		for _, s := range states {
			all = append(all, observe.Queue{Name: "outbox/" + s.Channel, Depth: s.Pending, Oldest: s.Oldest})
		}
	}
	if parked, err := h.hub.Parked(ctx); err == nil {
		all = append(all, observe.Queue{Name: "parked", Depth: len(parked)})
	}
	return all
}

// copies makes copies of the store.
func (h *house) copies() backup.Keeper {
	return backup.Keeper{DataDir: h.Config.DataDir, Store: h.store, Room: h.space.roomFor, Log: h.Log}
}

// backup sends an archive of everything that is kept (P20).
func (h *house) backup(ctx context.Context, send func(io.Reader)) error {
	return h.copies().Send(ctx, backup.Contents{Config: h.Config.File, Files: h.files, Version: version()}, send)
}

// transcribe returns what turns voices into text, nil if nothing does.
func (h *house) transcribe() func(context.Context, string, io.Reader) (string, error) {
	t := h.Config.Transcription
	if t == nil {
		return nil
	}
	return openai.NewTranscriber(openai.Config{Name: "transcription", BaseURL: t.BaseURL, APIKey: string(t.APIKey), Model: t.Model}, t.Language).Transcribe
}

// heard finds what was said with a person of the web page.
func (h *house) heard(ctx context.Context, person, words string) ([]chat.Find, error) {
	mine := string(chat.Address{Channel: "web", Chat: person}.Session()) + "/"
	return h.pool.Search(ctx, func(id chat.SessionID) bool { return strings.HasPrefix(string(id), mine) }, words, 50)
}

// greet tells whoever started the gateway where the page is. Only a person at a
// terminal is given a link that signs in: the output of a service is kept in
// logs, and whoever reads them would be the owner.
func (h *house) greet(ctx context.Context) {
	if h.Chat || h.Config.HTTP.Listen == "" || h.browser == nil {
		return
	}
	if !isTerminal(h.Stderr) {
		fmt.Fprintf(h.Stderr, "%-9s %s (parley link prints a link that signs you in)\n", "web", h.web.Home())
		return
	}
	link, err := h.web.Link(ctx, webOwner)
	if err != nil {
		h.Log.Error("no link to the web page", "err", err)
		return
	}
	fmt.Fprintf(h.Stderr, "%-9s %s (signs you in once; parley link makes another)\n", "web", link)
	if h.moved != "" {
		fmt.Fprintf(h.Stderr, "%-9s %s\n", "warning", h.moved)
	}
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// toTell returns what the owners should know of the start.
func (h *house) toTell() []string {
	fault := h.now.Load().FellBack
	if fault == nil {
		return h.notes
	}
	first, _, _ := strings.Cut(fault.Error(), "\n")
	return append(slices.Clone(h.notes), h.texts.Gateway.Owners.ConfigFaulty.With(first))
}

// tell has the owners know what went wrong at the start.
func (h *house) tell(ctx context.Context) {
	for _, note := range h.toTell() {
		if err := h.hub.TellOwners(ctx, h.began.Format(time.RFC3339Nano), note); err != nil {
			h.Log.Error("the owners were not told", "note", note, "err", err)
		}
	}
}
