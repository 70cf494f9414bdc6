package landlock

import "testing"

func BenchmarkRuleset(b *testing.B) {
	temp := b.TempDir()
	var s system
	for b.Loop() {
		v, err := newView(s.list(), nil, temp)
		if err != nil {
			b.Fatal(err)
		}
		f, err := v.ruleset(false)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
