package sandboxtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/probe"
)

// before is what the files of a probe have in them.
const before = "before"

// A plan says what there is to try.
type plan struct {
	Base    string // what the sandbox shows, read-only
	Work    string // a folder in it that may be changed
	Hidden  string // a file in it that is in a hidden folder
	Outside string // a file in no folder of the sandbox
}

// standing are files that no program may be able to change, relative to the base of a plan.
var standing = []string{"AGENTS.md", "memory/MEMORY.md"}

// A result is what the program in the sandbox tells of one attempt.
type result struct {
	Name   string
	Held   bool
	Detail string
}

// tryToGetOut has programs in a sandbox try everything that must be impossible there: what Parley tries at its
// start, and more.
func tryToGetOut(t *testing.T, s *suite) {
	tried, err := probe.Run(t.Context(), s.open(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range tried {
		t.Run(a.Name, func(t *testing.T) {
			s.skipExcepted(t)
			if !a.Held {
				t.Error(a.Detail)
			}
		})
	}
	scene := newScene(t)
	told, err := json.Marshal(scene.plan)
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(t, sandbox.Spec{
		Args: []string{s.self, commandAttempts, string(told)},
		Dir:  scene.plan.Work,
		Folders: []sandbox.Folder{
			{Path: s.self, Access: sandbox.ReadOnly},
			{Path: scene.plan.Base, Access: sandbox.ReadOnly},
			{Path: scene.plan.Work, Access: sandbox.ReadWrite},
			{Path: filepath.Dir(scene.plan.Hidden), Access: sandbox.Hidden},
		},
	})
	found := map[string]result{}
	for decoder := json.NewDecoder(&out.stdout); ; {
		var one result
		if err := decoder.Decode(&one); err != nil {
			break
		}
		found[one.Name] = one
	}
	if len(found) == 0 {
		t.Fatalf("nothing was tried: %+v, %v: %s", out.outcome, out.err, out.stderr.String())
	}
	scene.judge(t, s, found)
}

// A scene is what a plan is about.
type scene struct {
	plan    plan
	folders []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{folders: []string{t.TempDir(), t.TempDir()}}
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) build() error {
	base, outside := s.folders[0], s.folders[1]
	s.plan = plan{
		Base:    base,
		Work:    filepath.Join(base, "work"),
		Hidden:  filepath.Join(base, "hidden", "file"),
		Outside: filepath.Join(outside, "file"),
	}
	for _, folder := range []string{s.plan.Work, filepath.Dir(s.plan.Hidden), filepath.Join(base, "memory")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	for _, file := range s.files() {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			return err
		}
	}
	return os.Symlink(s.plan.Outside, filepath.Join(s.plan.Work, linkName))
}

// linkName is a symbolic link in the folder that may be changed to a file outside.
const linkName = "link"

// files returns the files that no program in the sandbox may change.
func (s *scene) files() []string {
	all := []string{s.plan.Hidden, s.plan.Outside}
	for _, name := range standing {
		all = append(all, filepath.Join(s.plan.Base, name))
	}
	return all
}

// judge looks at each attempt: at what the program told of it, and at the files. A program may believe that
// it was refused what it has done.
func (s *scene) judge(t *testing.T, all *suite, told map[string]result) {
	t.Helper()
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			all.skipExcepted(t)
			one, known := told[a.name]
			switch {
			case !known:
				t.Error("the program ended before it could tell")
			case !one.Held:
				t.Error("it worked")
			default:
				t.Log(one.Detail)
			}
		})
	}
	for _, file := range s.files() {
		content, err := os.ReadFile(file)
		if err != nil || string(content) != before {
			t.Errorf("%s has become %q, %v", filepath.Base(file), content, err)
		}
	}
}
