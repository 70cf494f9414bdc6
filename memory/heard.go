package memory

import "strings"

// heardTitle heads the part of a memory that was heard from others: it may be
// known, but nothing may ever be done because of it (R-S14).
const heardTitle = "## Heard from others (not checked)"

// apart parts a text from what was heard from others in it, which is returned
// without the marks of a quote.
func apart(text string) (own, heard string) {
	within := false
	for line := range strings.Lines(text) {
		switch bare := strings.TrimSpace(line); {
		case strings.EqualFold(bare, heardTitle):
			within = true
			continue
		case strings.HasPrefix(bare, "# "), strings.HasPrefix(bare, "## "):
			within = false
		}
		if within {
			heard += strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ")
		} else {
			own += line
		}
	}
	return own, strings.TrimLeft(heard, "\n")
}

// together is the reverse of apart. Whatever heard holds, each line of it is a
// quote under the title.
func together(own, heard string) string {
	quoted := ""
	for _, line := range rows(heard) {
		if line = strings.TrimSpace(line); line != "" {
			quoted += "> " + line + "\n"
		}
	}
	if quoted == "" {
		return own
	}
	return strings.TrimLeft(strings.TrimRight(own, "\n")+"\n\n"+heardTitle+"\n\n"+quoted, "\n")
}
