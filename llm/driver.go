package llm

// A Driver makes the models of one provider: it is what an entry of models in
// config.json says. The keys of the entry are its fields with a json tag, and the
// gateway reads and checks them by their tags (see package config).
type Driver interface {
	// Build returns the model of that name. It does no I/O.
	Build(name string) Model
	// Sees reports whether the model accepts pictures.
	Sees() bool
	// Host returns the name of the server that answers, for people to read; "" if
	// there is none.
	Host() string
}
