package sandbox_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"parley/tools/sandbox"
)

// TestRealFolders follows links of the operator and no others, and takes the stricter of two grants (R-S16).
func TestRealFolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "a", "machine": "/", "a/inner": "b"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		given []sandbox.Folder
		want  []sandbox.Folder
		links map[string]string
		fails bool
	}{
		"outer ones first": {
			given: []sandbox.Folder{
				{at("a/b"), sandbox.Hidden}, {at("a"), sandbox.ReadWrite}, {at("none"), sandbox.ReadOnly},
			},
			want: []sandbox.Folder{{at("a"), sandbox.ReadWrite}, {at("a/b"), sandbox.Hidden}},
		},
		"by two names": {
			given: []sandbox.Folder{{at("link"), sandbox.ReadOnly}, {at("a/"), sandbox.ReadWrite}},
			want:  []sandbox.Folder{{at("a"), sandbox.ReadOnly}},
			links: map[string]string{at("link"): at("a")},
		},
		"the name of what is hidden": {
			given: []sandbox.Folder{{at("link"), sandbox.Hidden}},
			want:  []sandbox.Folder{{at("a"), sandbox.Hidden}},
		},
		"a link in a folder that may be read": {
			given: []sandbox.Folder{{at("a"), sandbox.ReadOnly}, {at("a/inner"), sandbox.ReadWrite}},
			want:  []sandbox.Folder{{at("a"), sandbox.ReadOnly}, {at("a/b"), sandbox.ReadWrite}},
			links: map[string]string{at("a/inner"): at("a/b")},
		},
		"a link that a program may have made": {
			given: []sandbox.Folder{{at("a"), sandbox.ReadWrite}, {at("a/inner"), sandbox.ReadOnly}},
			fails: true,
		},
		"the machine":  {given: []sandbox.Folder{{"/", sandbox.ReadOnly}}, fails: true},
		"a link to it": {given: []sandbox.Folder{{at("machine"), sandbox.ReadOnly}}, fails: true},
		"a way round it": {
			given: []sandbox.Folder{{at("machine") + dir + "/a", sandbox.ReadOnly}},
			want:  []sandbox.Folder{{at("a"), sandbox.ReadOnly}},
			links: map[string]string{at("machine") + dir + "/a": at("a")},
		},
	} {
		if c.links == nil && !c.fails {
			c.links = map[string]string{}
		}
		got, links, err := sandbox.RealFolders(c.given)
		if (err != nil) != c.fails || !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(links, c.links) {
			t.Errorf("%s: %v, %v, %v", name, got, links, err)
		}
	}
}
