package secrets

import (
	"slices"
	"strings"
	"testing"
)

// TestSecretNames: what is kept out of logs has the name of a secret, and does not only have a part of it in its name.
func TestSecretNames(t *testing.T) {
	for _, name := range strings.Fields(`TOKEN API_KEY apiKey APIKey APIKEY OPENAI_API_KEY DB_PASSWORD AWS_SECRET_ACCESS_KEY cookie
		Set-Cookie authorization Authorization Proxy-Authorization x-api-key X-Auth GITHUB_TOKEN clientSecret client_secret MYSQL_PWD
		PGPASSWORD DB_PASS DBPASS dbPass SMTPPASS storepass bearer credentials GOOGLE_APPLICATION_CREDENTIALS SSH_KEY_2 KEY1 API_KEYS
		PRIVATEKEY signingKey AUTH BASIC_AUTH basicAuth OAUTH OAuth2Token AUTHTOKEN ACCESSTOKEN PASSPHRASE PASSCODE npm_config__auth
		BYPASS_KEY COMPASS_PASS COMPASSWORD`) {
		if !IsSecretName(name) || !IsName(name) {
			t.Errorf("%s is no name of a secret", name)
		}
	}
	for _, name := range strings.Fields(`GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL COMPASS_URL BYPASS_PROXY BYPASS bypassProxy AUTHOR authorName
		KEYBOARD KEYWORDS KEYCLOAK_URL MONKEY PASSENGERS PASSIVE_MODE AUTHORITY_URL LOG_LEVEL model`) {
		if IsSecretName(name) {
			t.Errorf("%s is the name of a secret", name)
		}
	}
}

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
		{"run --env=B=hunter2 -e=C=3 -eD=4 --header=X:y -HX-Y:z --environment=x image", "--env=B=hunter2 -e=C=3 -eD=4 --header=X:y -HX-Y:z"},
		{"-pMySecretPass1 mydb", "-pMySecretPass1"},
		{"-psecret mydb -pSecret other", "-psecret mydb -pSecret other"}, // it may be either
		{"-password hunter2 -apiKey k -s3-secret-key l -API_KEY m", "hunter2 k l m"},
		{"-dbPassword hunter2 -oauth2-token x -v", "hunter2 x"},
		{"postgresql://me:pw@http-db.internal/x redis://:pw@httpcache:6379 done", "postgresql://me:pw@http-db.internal/x redis://:pw@httpcache:6379"},
		{"--db=jdbc:postgresql://me:pw@http-db/x --url=https://example.com/docs", "--db=jdbc:postgresql://me:pw@http-db/x"},
		{"--url=https://http.example/docs --to=git+https://example.com/x", ""},
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

// TestValues: what no log may show of arguments is what their names say is a secret, and nothing else. Each case has the
// arguments, separated by "|", and those secrets.
func TestValues(t *testing.T) {
	for _, c := range [][2]string{
		{"-y|@modelcontextprotocol/server-filesystem|/tmp/secret", ""},
		{"--api-key=hunter2|--token|abc|--verbose", "hunter2|abc"},
		{"--password|--verbose|on", ""},
		{"run|-e|API_KEY=hunter2|--env|LOG_LEVEL=debug|-H|X-Api-Key: hunter3|image", "hunter2|hunter3"},
		{"--env=DB_PASS=hunter2|-e=B=c|-eMY_TOKEN=d|--header=Authorization: Bearer e|-HX-Y:z", "hunter2|d|Bearer e|e"},
		{"ghp_0123456789abcdef|serve|--id=other", "ghp_0123456789abcdef"},
		{"https://example.com/mcp?page=2&access_token=hunter2", "hunter2"},
		{"--url=https://example.com/?apiKey=hunter2", "hunter2"},
		{"--author=me|--keyboard|german|--env=GIT_AUTHOR_NAME=me", ""},
	} {
		got := Values(strings.Split(c[0], "|"))
		if want := strings.FieldsFunc(c[1], func(r rune) bool { return r == '|' }); !slices.Equal(got, want) {
			t.Errorf("%s: the secrets are %q, want %q", c[0], got, want)
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
