// Package live keeps pages up to date while somebody looks at them: it sends parts of a
// page, as server-sent events, whenever they have changed. Nothing is computed while
// there is no reader.
//
// The element around the parts says where they come from, data-live="/owner/events", and
// a part is an element with an ID, whose content is replaced. An element with the ID
// live shows whether the connection is there. The page loads live.js, which Routes serve.
package live

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	g "maragu.dev/gomponents"

	"parley/response"
	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

// Asset is the name of the script that a page loads.
const Asset = "live.js"

// Routes serve the script.
func Routes() []layout.Route { return layout.Assets(assets) }

// Streams are the connections to readers.
type Streams struct {
	once sync.Once
	done chan struct{}
}

// New returns Streams without readers.
func New() *Streams { return &Streams{done: make(chan struct{})} }

// Close ends all streams, and those that begin later.
func (s *Streams) Close() { s.once.Do(func() { close(s.done) }) }

// An Out sends events to one reader.
type Out struct {
	w    http.ResponseWriter
	sent map[string]string // parts, by ID
}

// Event sends an event with data as JSON.
func (o *Out) Event(name string, data any) error {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	if err := json.NewEncoder(&b).Encode(data); err != nil {
		return err
	}
	b.WriteByte('\n')
	return o.write(b.Bytes())
}

// Beat sends nothing, which tells whether the reader is still there.
func (o *Out) Beat() error { return o.write([]byte(":\n\n")) }

func (o *Out) write(event []byte) error {
	if _, err := o.w.Write(event); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// A Part is the content of an element of the page.
type Part struct {
	ID   string
	Node g.Node
}

// Parts sends those of parts that differ from what was sent before.
func (o *Out) Parts(parts []Part) error {
	for _, p := range parts {
		var b bytes.Buffer
		if err := p.Node.Render(&b); err != nil {
			return err
		}
		html := b.String()
		if before, sent := o.sent[p.ID]; sent && before == html {
			continue
		}
		o.sent[p.ID] = html
		if err := o.Event("part", map[string]string{"id": p.ID, "html": html}); err != nil {
			return err
		}
	}
	return nil
}

// Serve answers r with a stream, to which send writes until its context ends: when the
// reader leaves or s is closed. An error of send is that the reader has left.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, send func(context.Context, *Out) error) error {
	select {
	case <-s.done:
		return response.Problem{Status: http.StatusServiceUnavailable, Text: "Parley is shutting down."}
	default:
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &Out{w: w, sent: map[string]string{}}
	if out.write([]byte("retry: 1500\n\n")) != nil {
		return nil // the reader has left
	}
	_ = send(ctx, out) // the response has begun: who reads it sees that it ends
	return nil
}

// Follow is a send for Serve that sends parts every so often, and a beat when nothing
// has changed.
func Follow(every time.Duration, parts func(context.Context) ([]Part, error)) func(context.Context, *Out) error {
	return func(ctx context.Context, out *Out) error {
		for {
			all, err := parts(ctx)
			if err != nil {
				return err
			}
			if err := out.Parts(all); err != nil {
				return err
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return nil
			}
			if err := out.Beat(); err != nil {
				return err
			}
		}
	}
}
