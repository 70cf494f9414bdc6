package llm

import "testing"

func TestRatiosLearn(t *testing.T) {
	var r TokenRatios
	if r.Of("main") != 1 {
		t.Error("an unknown model is not taken at its word")
	}
	for range 50 {
		r.Learn("main", 1000, 1500)
	}
	if x := r.Of("main"); x < 1.49 || x > 1.5 {
		t.Errorf("ratio %f, want 1.5", x)
	}
	r.Learn("main", 1000, 0)
	if x := r.Of("main"); x < 1.49 {
		t.Error("a model that does not count changed the ratio")
	}
}
