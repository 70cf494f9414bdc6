package chat

import "testing"

// R-S14: what is known of one person is hidden from every other.
func TestHides(t *testing.T) {
	ann := Whose(Address{Channel: "telegram", Chat: "42"}, Sender{ID: "42", Role: User}, false)
	group := Whose(Address{Channel: "telegram", Chat: "-100", Thread: "7"}, Sender{ID: "1", Role: Owner}, true)
	owner := Whose(Address{Channel: "web", Chat: "owner"}, Sender{ID: "owner", Role: Owner}, false)
	if ann != "telegram:42" || group != "telegram:-100" || owner != TheOwner {
		t.Fatalf("got %q, %q, %q", ann, group, owner)
	}
	for _, x := range []struct {
		name string
		from []Person
	}{
		{"MEMORY.md", []Person{ann, group}},
		{"user.MD", []Person{ann, group}},
		{"memory/history.jsonl", []Person{ann, group}},
		{"Memory", []Person{ann, group}},
		{ann.Folder() + "/MEMORY.md", []Person{owner, group}},
		{group.Folder() + "/history.jsonl", []Person{owner, ann}},
		{ann.Folder() + "x/MEMORY.md", []Person{owner, ann, group}},
		{"memory/people", []Person{owner, ann, group}},
		{"memory-notes.md", nil},
		{"sub/MEMORY.md", nil},
		{"SOUL.md", nil},
	} {
		for _, p := range []Person{ann, group, owner} {
			want := false
			for _, f := range x.from {
				want = want || f == p
			}
			if got := p.Hides(x.name); got != want {
				t.Errorf("%s.Hides(%s) = %v", p, x.name, got)
			}
		}
	}
}
