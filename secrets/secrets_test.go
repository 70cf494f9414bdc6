package secrets

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, name := range []string{
		"apiKey", "API_KEY", "token", "GITHUB_TOKEN", "clientSecret", "MYSQL_PWD", "PGPASSWORD", "DB_PASS", "Authorization",
		"X-Auth", "cookie", "bearer", "credentials", "--api-key",
	} {
		if !IsName(name) {
			t.Errorf("%s is no name of a secret", name)
		}
	}
	for _, name := range []string{"LOG_LEVEL", "PLACE", "url", "--verbose", "timezone", "model"} {
		if IsName(name) {
			t.Errorf("%s is the name of a secret", name)
		}
	}
	for name, want := range map[string]bool{
		"password": true, "API key": true, "Card number": true, "your PIN": true, "access_token": true,
		"author": false, "keyboard": false, "spinning": false, "passengers": false,
	} {
		if IsAsked(name) != want {
			t.Errorf("a field %q is asked for a secret: %v", name, !want)
		}
	}
}

// Each case has the arguments, and those that are secrets after them.
func TestInArguments(t *testing.T) {
	for _, c := range [][2]string{
		{"-y @modelcontextprotocol/server-filesystem /tmp", ""},
		{"--api-key=xyz", "--api-key=xyz"},
		{"--token abc --verbose", "abc"},
		{"--password -s3cret! x", "-s3cret!"},
		{"--no-auth --port 8080", ""},
		{"--no-auth --port=8080", ""},
		{"run -e API=1 --env B=2 -H X:y image", "API=1 B=2 X:y"},
		{"ghp_0123456789abcdef serve", "ghp_0123456789abcdef"},
		{"--id=ghp_0123456789abcdef", "--id=ghp_0123456789abcdef"},
		{"postgresql://me:pw@db.example/x https://example.com/docs/v1", "postgresql://me:pw@db.example/x"},
		{"https://example.com/mcp?a=b", "https://example.com/mcp?a=b"},
		{"https://example.com/s/Ab12-Cd34", "https://example.com/s/Ab12-Cd34"},
	} {
		args := strings.Fields(c[0])
		var found []string
		for i, is := range InArguments(args) {
			if is {
				found = append(found, args[i])
			}
		}
		if want := strings.Fields(c[1]); !slices.Equal(found, want) {
			t.Errorf("%s: %q are secrets, want %q", c[0], found, want)
		}
	}
}

func TestInText(t *testing.T) {
	for text, want := range map[string]bool{
		"https://me:pw@a.example": true, "http://me@a.example/x": true, "https://a.example/?apiKey=1": true,
		"https://a.example/x?b=c&token=d": true, "see wss://a.example#access_token=x": true,
		"https://a.example/?key=": false, "https://a.example/?page=2": false, "https://:@a.example": false,
		"me@a.example": false, "https://a.example/token/x": false, "what?key=1": false,
	} {
		if InText(text) != want {
			t.Errorf("%s has a secret: %v", text, !want)
		}
	}
}
