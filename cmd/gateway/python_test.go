package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm/llmtest"
)

// drawingCode writes a picture of 3 by 2 points without any library.
const drawingCode = `
import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
with open('red.png', 'wb') as f:
    f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 3, 2, 8, 2, 0, 0, 0)) +
        chunk(b'IDAT', zlib.compress((b'\x00' + b'\xff\x00\x00' * 3) * 2)) + chunk(b'IEND', b''))
`

// TestPythonPicture: a picture that Python code writes reaches the chat as a picture, with the answer, once, and the
// model sees it, too; at the loosest level, and with the modules that config adds to the level that people have.
func TestPythonPicture(t *testing.T) {
	t.Parallel()
	t.Run("lenient", func(t *testing.T) { drawInChat(t, drawingCode, "lenient") })
	t.Run("extra modules", func(t *testing.T) {
		writing := strings.NewReplacer("import struct", "import pathlib, struct", "open('red.png', 'wb')", "pathlib.Path('red.png').open('wb')")
		drawInChat(t, writing.Replace(drawingCode), "standard")
	})
}

// drawInChat has a model run code that writes red.png.
func drawInChat(t *testing.T, code, level string) {
	t.Helper()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		said := spokenLast(r)
		drawn := slices.IndexFunc(r.Messages, func(m llmtest.Message) bool { return m.Role == "tool" })
		switch {
		case said == "draw" && drawn < 0:
			args := fmt.Sprintf(`{"code": %q, "strictness": %q}`, code, level)
			return llmtest.Reply{Calls: call("execute_python", args)}
		case said != "bye":
			return llmtest.Reply{Text: "drawn: " + r.Messages[drawn].Content}
		}
		return echo(ctx, r)
	})
	w.model["vision"] = true
	extra := map[string]any{"standard": []string{"pathlib", "struct", "zlib"}}
	w.more["tools"] = map[string]any{"python": map[string]any{"extraModules": extra}}
	w.start()
	w.tg.Say(person, "draw")
	texts := w.told(person, "the picture", func(texts []string) bool { return strings.Contains(strings.Join(texts, ""), "red.png") })
	if !strings.Contains(strings.Join(texts, ""), `"success":true`) {
		t.Fatalf("%q", texts)
	}
	w.tg.Say(person, "bye")
	w.told(person, "the next answer", func(texts []string) bool { return strings.HasSuffix(texts[len(texts)-1], "bye") })
	sent := 0
	for _, m := range w.tg.Chat(person) {
		for _, f := range m.Files {
			if sent++; f.Kind != "photo" || !strings.HasPrefix(string(f.Data), "\x89PNG") {
				t.Errorf("%s %q %q", f.Kind, f.Name, f.Data)
			}
		}
	}
	kept, err := filepath.Glob(filepath.Join(w.dir, "workspace", "work", "python", "*", "red.png"))
	if sent != 1 || len(kept) != 1 || err != nil {
		t.Errorf("%d pictures were sent, and %q are kept, %v", sent, kept, err)
	}
	seen := false
	for _, r := range w.llm.Requests() {
		for _, m := range r.Messages {
			seen = seen || len(m.Images) > 0
		}
	}
	if !seen {
		t.Error("the model was not shown the picture")
	}
}

// TestPythonOverACrash: code that runs when the gateway is killed is run again, and its file is sent once. Nothing of
// the first run goes on.
func TestPythonOverACrash(t *testing.T) {
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if spokenLast(r) == "bye" {
			return echo(ctx, r)
		}
		if rs := results(r); len(rs) > 0 {
			return llmtest.Reply{Text: "it says " + rs[0]}
		}
		code := `import time\ntime.sleep(2)\nopen('done.txt', 'w').write('x')\nprint('slept')`
		return llmtest.Reply{Calls: call("execute_python", `{"code": "`+code+`", "strictness": "lenient"}`)}
	})
	w.start()
	w.tg.Say(person, "sleep")
	begun := func() (found []string) {
		found, err := filepath.Glob(filepath.Join(scratch, "parley-python-*", ".result"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for deadline := time.Now().Add(waitTime); len(begun()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the code does not begin")
		}
	}
	first := filepath.Dir(begun()[0])
	w.kill()
	w.start()
	w.told(person, "the output", func(texts []string) bool { return strings.Contains(strings.Join(texts, ""), "slept") })
	w.tg.Say(person, "bye")
	w.told(person, "the next answer", func(texts []string) bool { return strings.HasSuffix(texts[len(texts)-1], "bye") })
	sent := 0
	for _, m := range w.tg.Chat(person) {
		sent += len(m.Files)
	}
	if _, err := os.Stat(filepath.Join(first, "done.txt")); sent != 1 || !os.IsNotExist(err) {
		t.Errorf("%d files were sent; the first run: %v", sent, err)
	}
}
