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

// events is the body of an answer, cleaned for go-openai: one "data:" line for
// each piece and nothing else. Comments are dropped, and an error in any
// spelling becomes the error of Read.
type events struct {
	body    watched
	lines   *bufio.Scanner
	done    bool // the provider said that this was all
	event   string
	pending []byte
	err     error
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

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.pending) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

// Close implements io.Closer. Once the answer is whole it reads to the end of
// the body, for the connection to be used again.
func (e *events) Close() error {
	if e.done {
		e.body.watch.hurry(afterDone)
		for e.lines.Scan() {
		}
	}
	return e.body.Close()
}

// next takes in the next line.
func (e *events) next() {
	if !e.lines.Scan() {
		e.err = io.EOF
		if err := e.lines.Err(); err != nil {
			e.err = cut(fmt.Errorf("read the answer: %w", err))
		}
		return
	}
	line := strings.TrimPrefix(e.lines.Text(), "\ufeff")
	name, value, _ := strings.Cut(line, ":")
	switch {
	case line == "":
		e.event = ""
	case name == "event":
		e.event = strings.TrimSpace(value)
	case name == "data":
		e.data(strings.TrimSpace(value))
	case line[0] == '{': // an error, written by a proxy that did not care that this is a stream
		e.fault([]byte(line))
	case line[0] == '<':
		e.err = &llm.Error{
			Kind: llm.Unreachable,
			Err:  errors.New("a web page answered in the model's place: is baseUrl right?"),
		}
	}
}

func (e *events) data(payload string) {
	e.body.watch.answered()
	switch {
	case payload == "":
		return
	case payload == "[DONE]":
		e.done = true
	case e.fault([]byte(payload)):
		return
	}
	if rest, ok := strings.CutPrefix(payload, "{"); ok {
		payload = "{ " + rest // go-openai would take {"error": for an error, even where it is null
	}
	e.pending = append(append(append(e.pending[:0], "data: "...), payload...), '\n')
}

// fault makes payload the error of Read, where it is one.
func (e *events) fault(payload []byte) bool {
	if e.event != "error" && !bytes.Contains(payload, []byte(`"error"`)) {
		return false
	}
	fault, serious := complaintIn(payload, 0)
	if serious || e.event == "error" {
		e.err = fault
	}
	return e.err != nil
}
