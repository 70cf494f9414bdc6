package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// A long result of JSON is kept so that it can be read and searched line by line.
func TestLayOut(t *testing.T) {
	var page strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&page, "Line %d says \"é\" & <b>.\n", i)
	}
	words := strings.TrimSpace(strings.Repeat("word äöü ", 20_000))
	solid := strings.Repeat("日", 30_000)
	data, _ := json.Marshal(map[string]any{"url": "https://x.y", "text": page.String(), "words": words, "solid": solid, "list": []any{1, "b", map[string]any{"c": words}}, "z": nil})
	got := layOut(string(data))
	for line := range strings.Lines(got) {
		if len(line) > maxTextLine+1 {
			t.Fatalf("a line of %d bytes: %.100q", len(line), line)
		}
	}
	for _, want := range []string{"\n  \"text\": \"\"\"\nLine 0 says \"é\" & <b>.\nLine 1 says", "\nLine 4999 says \"é\" & <b>.\n\n\"\"\",\n  \"url\": \"https://x.y\",\n", "\n    \"b\",\n    {\n      \"c\": \"\"\"\nword äöü", "\n  \"z\": null\n}"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %.300q", want, got)
		}
	}
	joined := strings.ReplaceAll(got, "\n", "")
	if !strings.Contains(joined, words) || !strings.Contains(joined, solid) {
		t.Error("words are lost")
	}
	for before := range 4 { // where a line is broken may be in the middle of a character
		solid := strings.Repeat("x", before) + strings.Repeat("日", 3000) + strings.Repeat("🙂", 3000)
		data, _ := json.Marshal([]string{solid})
		if got := layOut(string(data)); !utf8.ValidString(got) || !strings.Contains(strings.ReplaceAll(got, "\n", ""), solid) {
			t.Errorf("a character behind %d others is broken", before)
		}
	}
	for _, text := range []string{"", "plain\ntext", "{broken", `"a string"`, "12"} {
		if layOut(text) != text {
			t.Errorf("%q became %q", text, layOut(text))
		}
	}
}
