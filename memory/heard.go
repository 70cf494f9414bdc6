package memory

import "strings"

// heardTitle heads the part of a memory that was heard from others: it may be
// known, but nothing may ever be done because of it (R-S14).
const heardTitle = "## Heard from others (not checked)"

// apart parts a text from what was heard from others in it, which is returned
// without the marks of a quote.
func apart(text string) (own, heard string) {
	part := &own
	for line := range strings.Lines(text) {
		switch bare := strings.TrimSpace(line); {
		case strings.EqualFold(bare, heardTitle):
			part, own = &heard, strings.TrimRight(own, "\n")+"\n"
			continue
		case part == &heard && (strings.HasPrefix(bare, "# ") || strings.HasPrefix(bare, "## ")):
			part, own = &own, own+"\n"
		}
		if part == &heard {
			line = strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ")
		}
		*part += line
	}
	return strings.TrimLeft(own, "\n"), strings.TrimLeft(heard, "\n")
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
