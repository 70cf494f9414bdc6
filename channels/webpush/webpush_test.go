package webpush

import (
	"crypto/ecdh"
	"encoding/base64"
	"strings"
	"testing"
)

func unbase(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestRFC8291 encrypts the example of RFC 8291, section 5.
func TestRFC8291(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(unbase(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	var sub Subscription
	sub.Keys.P256dh = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	sub.Keys.Auth = "BTBZMqHH6r4Tts7J_aSIgg"
	got, err := encrypt(sub, []byte("When I grow up, I want to be a watermelon"), own, unbase(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml" +
		"mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT" +
		"pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestCheck: a subscription that cannot be one of a browser is refused.
func TestCheck(t *testing.T) {
	right := Subscription{Endpoint: "https://push.example/x"}
	right.Keys.P256dh = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4="
	right.Keys.Auth = "BTBZMqHH6r4Tts7J_aSIgg=="
	if err := right.Check(); err != nil {
		t.Errorf("refused with padding: %v", err)
	}
	for name, change := range map[string]func(*Subscription){
		"http":       func(s *Subscription) { s.Endpoint = "http://push.example/x" },
		"file":       func(s *Subscription) { s.Endpoint = "file:///etc/passwd" },
		"user":       func(s *Subscription) { s.Endpoint = "https://a:b@push.example/x" },
		"long":       func(s *Subscription) { s.Endpoint += strings.Repeat("x", maxEndpoint) },
		"no point":   func(s *Subscription) { s.Keys.P256dh = "BCVxsr7N" },
		"short auth": func(s *Subscription) { s.Keys.Auth = "BTBZ" },
	} {
		wrong := right
		change(&wrong)
		if wrong.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
