package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"parley/chat"
	"parley/config"
	"parley/redact"
	"parley/tools/custom"
)

// An apiDocument is docs/openapi.yaml, and what a test has seen of it.
type apiDocument struct {
	t          testing.TB
	whole      map[string]any
	schemas    map[string]any          // that refuse whatever they do not name
	operations map[string]operation    // by method and path, such as "GET /api/cron"
	mux        *http.ServeMux          // finds the operation of a request
	seen       map[string]map[int]bool // the statuses with which operations have answered
}

// An operation is what the document says of a method and a path.
type operation struct {
	public    bool // nobody needs to sign in
	request   string
	responses map[string]any // by status, or "default"
}

// readAPI reads docs/openapi.yaml.
func readAPI(t testing.TB) *apiDocument {
	t.Helper()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &apiDocument{t: t, operations: map[string]operation{}, mux: http.NewServeMux(), seen: map[string]map[int]bool{}}
	if err := yaml.Unmarshal(text, &d.whole); err != nil {
		t.Fatal(err)
	}
	closeObjects(d.at("components", "schemas"))
	d.schemas = d.at("components", "schemas")
	for path, item := range d.at("paths") {
		for method, found := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			said := found.(map[string]any)
			o := operation{responses: said["responses"].(map[string]any), request: d.requestSchema(said["requestBody"])}
			if need, ok := said["security"].([]any); ok {
				o.public = slices.ContainsFunc(need, func(one any) bool { return len(one.(map[string]any)) == 0 })
			}
			pattern := strings.ToUpper(method) + " " + path
			d.operations[pattern] = o
			d.mux.HandleFunc(pattern, http.NotFound)
		}
	}
	return d
}

// at returns the object at a path of keys.
func (d *apiDocument) at(path ...string) map[string]any {
	d.t.Helper()
	found := d.whole
	for _, key := range path {
		next, ok := found[key].(map[string]any)
		if !ok {
			d.t.Fatalf("docs/openapi.yaml has no %s", strings.Join(path, "/"))
		}
		found = next
	}
	return found
}

// resolve follows v if it is a reference.
func (d *apiDocument) resolve(v any) map[string]any {
	d.t.Helper()
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return m
}

// requestSchema returns the name of the schema of a request, or "".
func (d *apiDocument) requestSchema(body any) string {
	content, _ := d.resolve(body)["content"].(map[string]any)
	kind, _ := content["application/json"].(map[string]any)
	schema, _ := kind["schema"].(map[string]any)
	ref, _ := schema["$ref"].(string)
	return strings.TrimPrefix(ref, "#/components/schemas/")
}

// closeObjects has every object within schema refuse properties that it does not name, unless it says otherwise.
func closeObjects(schema map[string]any) {
	_, named := schema["properties"].(map[string]any)
	_, says := schema["additionalProperties"]
	if named && !says {
		schema["additionalProperties"] = false
	}
	for _, v := range schema {
		switch v := v.(type) {
		case map[string]any:
			closeObjects(v)
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					closeObjects(m)
				}
			}
		}
	}
}

// validate returns what is wrong with value according to schema.
func (d *apiDocument) validate(schema any, value any) error {
	text, err := json.Marshal(map[string]any{"$defs": d.schemas, "allOf": []any{schema}})
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/$defs/"))
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	return resolved.Validate(value)
}

// check wants what an operation has answered to be described.
func (d *apiDocument) check(method, path string, status int, kind string, body []byte) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://127.0.0.1"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	_, pattern := d.mux.Handler(r)
	o, found := d.operations[pattern]
	if !found {
		d.t.Fatalf("%s %s is not described", method, path)
	}
	if d.seen[pattern] == nil {
		d.seen[pattern] = map[int]bool{}
	}
	d.seen[pattern][status] = true
	described := d.resolve(o.responses[strconv.Itoa(status)])
	if described == nil {
		d.t.Errorf("%s answered %s with %d, which is not described: %.300s", pattern, path, status, body)
		return
	}
	content, _ := described["content"].(map[string]any)
	kind, _, _ = mime.ParseMediaType(kind)
	one, found := content[kind].(map[string]any)
	switch {
	case content == nil && len(body) == 0:
	case !found:
		d.t.Errorf("%s answered %d with %q, which is not described: %.300s", pattern, status, kind, body)
	case kind == "application/json":
		d.checkJSON(pattern, one["schema"], body)
	case kind == "text/event-stream":
		for line := range strings.Lines(string(body)) {
			event, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if ok && event != "[DONE]" {
				d.checkJSON(pattern, one["schema"], []byte(event))
			}
		}
	}
}

func (d *apiDocument) checkJSON(pattern string, schema any, text []byte) {
	d.t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		d.t.Errorf("%s: %v: %.300s", pattern, err, text)
	} else if err := d.validate(schema, value); err != nil {
		d.t.Errorf("%s: %v: %.1000s", pattern, err, text)
	}
}

// otherRoutes match what docs/openapi.yaml leaves out: pages, and what has a protocol of its own.
var otherRoutes = regexp.MustCompile(`^(GET /owner\S*|(GET|POST) /admin/\S+|/admin/|/api/admin/|GET /signin|GET /favicon.ico|` +
	`GET /(app|assets|static|oauth)/\S*|/|/v1/|/mcp)$`)

// TestOpenAPIRoutes: docs/openapi.yaml describes every route of the API, and no other.
func TestOpenAPIRoutes(t *testing.T) {
	d := readAPI(t)
	e := config.NewEnviron([]string{"HOME=" + t.TempDir()})
	dir := t.TempDir()
	source := config.Source{File: dir + "/config.json", Data: dir, Environ: e, Drivers: drivers()}
	c, err := config.Parse(source, []byte(`{"channels": {"console": {}, "web": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{began: time.Now(), options: options{
		Config: c, Chat: true, Brief: true, Stderr: io.Discard, Recent: &redact.Recent{}, Redact: &redact.Redactor{},
		Log: slog.New(slog.DiscardHandler),
	}}
	defer func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.build(t.Context(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, pattern := range append(g.web.Patterns(), g.api.Patterns()...) {
		if !otherRoutes.MatchString(pattern) {
			served = append(served, strings.ReplaceAll(pattern, "...}", "}"))
		}
	}
	slices.Sort(served)
	described := slices.Sorted(maps.Keys(d.operations))
	for _, pattern := range served {
		if !slices.Contains(described, pattern) {
			t.Errorf("docs/openapi.yaml lacks %s", pattern)
		}
	}
	for _, pattern := range described {
		if !slices.Contains(served, pattern) {
			t.Errorf("docs/openapi.yaml has %s, which is not served", pattern)
		}
	}
}

// TestOpenAPIRequests: the fields of requests that endpoints take leniently are those of their types. What the
// strict ones take is asked of them by TestOpenAPI.
func TestOpenAPIRequests(t *testing.T) {
	d := readAPI(t)
	compare := func(schema string, want []string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(d.at("components", "schemas", schema, "properties")))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("docs/openapi.yaml says of %s %q, and the program reads %q", schema, got, want)
		}
	}
	for schema, typ := range map[string]reflect.Type{
		"CustomToolDraft": reflect.TypeFor[custom.Draft](),
		"CustomToolTrial": reflect.TypeFor[custom.Trial](),
		"Approval":        reflect.TypeFor[chat.Approval](),
	} {
		var fields []string
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, name)
		}
		compare(schema, fields)
	}
	asked := declaredFields(t, "../../channels/api/wishes.go", "options")
	compare("ChatRequest", append(asked, declaredFields(t, "../../channels/api/request.go", "request")...))
	compare("ChatMessage", declaredFields(t, "../../channels/api/request.go", "message"))
	compare("ChatPart", declaredFields(t, "../../channels/api/request.go", "part"))
	compare("CustomToolFile", declaredFields(t, "../../web/toolpages/customapi.go", "file"))
}

// declaredFields returns the names that JSON has for the fields of a struct.
func declaredFields(t *testing.T, file, name string) (fields []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		declared, ok := n.(*ast.TypeSpec)
		if !ok || declared.Name.Name != name {
			return true
		}
		for _, f := range declared.Type.(*ast.StructType).Fields.List {
			for _, field := range f.Names {
				tag := ""
				if f.Tag != nil {
					tag, _, _ = strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				}
				if tag == "" {
					tag = strings.ToLower(field.Name)
				}
				if field.IsExported() {
					fields = append(fields, tag)
				}
			}
		}
		return false
	})
	return fields
}

// An apiClient is a program or a browser that uses the API of a testGateway.
type apiClient struct {
	*apiDocument
	base   string
	bearer string       // a key or a token; "": none
	http   *http.Client // with the cookie of whoever is signed in
}

// call makes a request and wants it to be answered with status, as the document says. It returns the answer.
func (c apiClient) call(method, path string, say any, status int) []byte {
	c.t.Helper()
	got, kind, body := c.send(method, path, say)
	if got != status {
		c.t.Errorf("%s %s %v: %d, want %d: %.500s", method, path, say, got, status, body)
	}
	path, _, _ = strings.Cut(path, "?")
	c.check(method, path, got, kind, body)
	return body
}

func (c apiClient) send(method, path string, say any) (status int, kind string, body []byte) {
	c.t.Helper()
	return c.sendAs("application/json", method, path, say)
}

// sendAs makes a request whose body is said to be of that type.
func (c apiClient) sendAs(contentType, method, path string, say any) (status int, kind string, body []byte) {
	c.t.Helper()
	var b bytes.Buffer
	if say != nil {
		if err := json.NewEncoder(&b).Encode(say); err != nil {
			c.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), waitTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, &b)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Parley", "1")
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), body
}

// field returns what is at a path of keys in an answer.
func (c apiClient) field(answer []byte, path ...string) string {
	c.t.Helper()
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		c.t.Fatalf("%v: %s", err, answer)
	}
	for _, key := range path {
		if list, ok := value.([]any); ok {
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(list) {
				c.t.Fatalf("no %q in %s", path, answer)
			}
			value = list[n]
			continue
		}
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return fmt.Sprint(value)
}
