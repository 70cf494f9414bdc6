package doctor

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/store/bolt"
	"parley/timetest"
	"parley/web"
)

// A findingCase is what a check should find.
type findingCase struct {
	got    Finding
	status Status
	text   string
}

func wantFindings(t *testing.T, cases []findingCase) {
	t.Helper()
	for _, c := range cases {
		hasAdvice := c.got.Advice != ""
		if c.got.Status != c.status || !strings.Contains(c.got.Text, c.text) || hasAdvice == (c.status == OK) {
			t.Errorf("%+v, want %s %s", c.got, c.status, c.text)
		}
	}
}

// writeFile writes a file into a new folder and returns the folder.
func writeFile(t *testing.T, name, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The folder itself is named, not ".", and what is in it is counted in words.
func TestOpenText(t *testing.T) {
	const others = "other users of this machine have access to "
	for want, exposed := range map[string][]string{
		"/d": {"."},
		"/d and to 1 file or folder in it, such as a":   {".", "a"},
		"/d and to 2 files or folders in it, such as a": {".", "a", "b"},
		"1 file or folder in /d, such as b":             {"b"},
		"2 files or folders in /d, such as a":           {"a", "b"},
	} {
		if got := openText("/d", exposed); got != others+want {
			t.Errorf("%v: %q", exposed, got)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(writeFile(t, "file", ""), "file")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, []findingCase{
		{Folder(private, ""), OK, "MiB free"},
		{Folder(filepath.Join(private, "none"), ""), OK, "is not there yet"},
		{Folder(dir, ""), Warn, "other users of this machine have access to " + dir},
		{Folder(file, ""), Fail, "no folder"},
	})
}

func TestStore(t *testing.T) {
	dir := writeFile(t, "parley.db", "a store")
	check := func(dir string, damaged []string, err error) Finding {
		probe := func(context.Context, string) ([]string, error) { return damaged, err }
		restore := func(file string) string { return "parley restore " + file }
		return Store{DataDir: dir, Restore: restore, Probe: probe}.Check(t.Context(), Gateway{})
	}
	copies := t.TempDir()
	backups := filepath.Join(copies, "backups")
	err := os.Mkdir(backups, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(backups, "parley-20260101.db"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, []findingCase{
		{check(dir, nil, errors.New("it is cut off")), Fail, "cut off"},
		{check(dir, []string{"a log"}, nil), Fail, "damaged values in"},
		{check(writeFile(t, "parley.db", ""), nil, nil), Fail, "is empty"},
		{check(writeFile(t, "parley.db.mark", ""), nil, nil), Fail, "is missing"},
		{check(copies, nil, nil), Fail, "is gone, though there are copies of it"},
		{check(t.TempDir(), nil, nil), OK, "is not there yet"},
	})
}

// A file that 32 bits cannot use is not called damaged, and before it is full, doctor warns, whether a gateway runs
// or not.
func TestStoreOf32Bits(t *testing.T) {
	const most = 1 << 30
	sized := func(mib int64) (dir string) {
		dir = writeFile(t, "parley.db", "a store")
		if err := os.Truncate(filepath.Join(dir, "parley.db"), mib<<20); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	probe := func(context.Context, string) ([]string, error) { return nil, errors.New("it was probed") }
	store := func(dir string, most int) Store { return Store{DataDir: dir, MaxBytes: most, Probe: probe} }
	ctx := t.Context()
	var stopped Gateway
	running := Gateway{PID: 7, Status: func(context.Context) (web.Overview, error) { return web.Overview{}, nil }}
	large := store(sized(1025), most).Check(ctx, stopped)
	if !strings.Contains(large.Advice, "64-bit machine") {
		t.Errorf("advice about a file that is too large: %q", large.Advice)
	}
	dir := t.TempDir()
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	size := int(info.Size())
	whole := func(most int) Finding { return Store{DataDir: dir, MaxBytes: most}.Check(ctx, stopped) }
	wantFindings(t, []findingCase{
		{large, Fail, "has 1025 MiB, more than the 1024"},
		{store(sized(1024), most).Check(ctx, stopped), Fail, "it was probed"},
		{store(sized(899), most).Check(ctx, running), OK, "no damage"},
		{store(sized(900), most).Check(ctx, running), Warn, "has 900 of the 1024 MiB"},
		{whole(size), Warn, "not even deletions"},
		{whole(2 * size), OK, "is whole"},
		{whole(0), OK, "is whole"},
	})
}

func TestGateway(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	ctx := t.Context()
	running := func(o web.Overview, err error) Gateway {
		return Gateway{PID: 7, Status: func(context.Context) (web.Overview, error) { return o, err }}
	}
	silent := running(web.Overview{}, errors.New("no answer"))
	wantFindings(t, []findingCase{
		{Gateway{}.Check(ctx), OK, "does not run"},
		{silent.Check(ctx), OK, "process id 7"},
		{running(web.Overview{Warnings: []string{"odd"}}, nil).Check(ctx), Warn, "odd"},
		{silent.storeFinding(ctx), Warn, "in use by the gateway"},
		{running(web.Overview{Damaged: []string{"a log"}}, nil).storeFinding(ctx), Fail, "the first is a log"},
		{silent.Port(ctx, "127.0.0.1:1"), OK, "left to the gateway"},
		{Gateway{}.Port(ctx, taken), Fail, "in use"},
		{Gateway{}.DefaultPort(ctx, taken), Warn, taken + " is in use by another program, so the web page gets another port"},
		{running(web.Overview{Page: "http://127.0.0.1:9"}, nil).DefaultPort(ctx, taken), Warn, "is at http://127.0.0.1:9"},
	})
}

// TestModelAdvice checks that there is advice for every way a model can fail.
func TestModelAdvice(t *testing.T) {
	kinds := []llm.Kind{
		llm.Auth, llm.Quota, llm.BadRequest, llm.TooLong, llm.RateLimited, llm.Overloaded, llm.Cut, llm.TimedOut,
		llm.Unreachable,
	}
	for _, k := range kinds {
		m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
			return llm.Message{}, &llm.Error{Kind: k, Err: errors.New("because")}
		})
		f := Model(t.Context(), "x", "m", m)
		if f.Status != Fail || f.Advice == "" || !strings.Contains(f.Text, string(k)) || !strings.Contains(f.Text, "because") {
			t.Errorf("%s: %+v", k, f)
		}
	}
}

// TestChecksEndTogether checks that whatever hangs, all checks end in ten seconds.
func TestChecksEndTogether(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		hang := Check{"hangs", func(ctx context.Context) Finding {
			<-ctx.Done()
			return Finding{Fail, ctx.Err().Error(), "wait"}
		}}
		start := time.Now()
		var out bytes.Buffer
		healthy := Run(t.Context(), slices.Repeat([]Check{hang}, 20), func(name string, f Finding) { Print(&out, name, f) })
		if n := strings.Count(out.String(), "FAIL  hangs           context deadline exceeded\n"); n != 20 || healthy {
			t.Errorf("%d findings, healthy: %v\n%s", n, healthy, &out)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}
