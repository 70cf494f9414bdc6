package agent

import "testing"

func TestRatiosLearn(t *testing.T) {
	var r ratios
	if r.of("main") != 1 {
		t.Error("an unknown model is not taken at its word")
	}
	for range 50 {
		r.learn("main", 1000, 1500)
	}
	if x := r.of("main"); x < 1.49 || x > 1.5 {
		t.Errorf("ratio %f, want 1.5", x)
	}
	r.learn("main", 1000, 0)
	if x := r.of("main"); x < 1.49 {
		t.Error("a model that does not count changed the ratio")
	}
}
