package retention

// WithStep returns a with a function that is called before each step of an Add.
func (a Archive) WithStep(step func(call string) error) Archive {
	a.step = step
	return a
}

// TailSize is exported for tests.
const TailSize = tailSize
