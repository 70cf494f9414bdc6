package doctor

// Python tells where the interpreter is that runs what models write; err says why there is none.
func Python(path string, err error) Finding {
	if err != nil {
		return Finding{Warn, err.Error() + ", so the agent cannot run code", "install python3"}
	}
	return Finding{OK, path, ""}
}
