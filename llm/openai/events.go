package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/llm"
)

const maxLine = 2 * maxAnswer // bytes: an answer in JSON takes more room than by itself

// events are the pieces of an answer that comes in. Comments are dropped, and
// so is what vendors put between the lines.
type events struct {
	body  watched
	lines *bufio.Scanner
	event string
	done  bool // the provider said that this was all
}

func newEvents(body io.ReadCloser, w *watch) *events {
	e := &events{body: watched{body, w}}
	e.lines = bufio.NewScanner(e.body)
	e.lines.Buffer(nil, maxLine)
	return e
}

// watched is a body whose watch knows of every byte.
type watched struct {
	io.ReadCloser
	watch *watch
}

func (b watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.alive()
	}
	return n, err
}

func cut(err error) *llm.Error { return &llm.Error{Kind: llm.Cut, Err: err} }

// next returns the next piece, in JSON, or an error that came in, in whatever
// spelling; after the last piece io.EOF.
func (e *events) next() ([]byte, error) {
	for e.lines.Scan() {
		piece, err := e.line(bytes.TrimPrefix(e.lines.Bytes(), []byte("\ufeff")))
		if len(piece) > 0 || err != nil {
			return piece, err
		}
	}
	if err := e.lines.Err(); err != nil {
		return nil, cut(fmt.Errorf("read the answer: %w", err))
	}
	return nil, io.EOF
}

// close reads to the end of the body once the answer is whole, for the
// connection to be used again.
func (e *events) close() {
	if e.done {
		e.body.watch.hurry(afterDone)
		for e.lines.Scan() {
		}
	}
	_ = e.body.Close() // what matters was read
}

func (e *events) line(line []byte) (piece []byte, err error) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case len(line) == 0:
		e.event = ""
	case string(name) == "event":
		e.event = strings.TrimSpace(string(value))
	case string(name) == "data":
		return e.data(bytes.TrimSpace(value))
	case line[0] == '{': // an error, written by a proxy that did not care that this is a stream
		return nil, e.fault(line)
	case line[0] == '<':
		return nil, &llm.Error{Kind: llm.Unreachable, Err: errors.New("a web page answered in the model's place: is baseUrl right?")}
	}
	return nil, nil
}

func (e *events) data(payload []byte) (piece []byte, err error) {
	e.body.watch.answered()
	if string(payload) == "[DONE]" {
		e.done = true
		return nil, io.EOF
	}
	return payload, e.fault(payload)
}

// fault returns the error that payload is, if it is one.
func (e *events) fault(payload []byte) error {
	if e.event != "error" && !bytes.Contains(payload, []byte(`"error"`)) {
		return nil
	}
	fault, serious := complaintIn(payload, 0)
	if serious || e.event == "error" {
		return fault
	}
	return nil
}
