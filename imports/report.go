package imports

import (
	"fmt"
	"io"
	"path/filepath"
)

// Print prints what p does, or has done. repeat is the command line that does it.
func (p *Plan) Print(w io.Writer, repeat string) {
	fmt.Fprintf(w, "%s in %s, into the Parley in %s\n", p.title, p.Path, p.DataDir)
	last := Action("")
	for _, i := range p.Items {
		if i.Action != last {
			fmt.Fprintf(w, "\n%s\n", i.Action)
		}
		last = i.Action
		text := "  " + line(i.What)
		if i.To != "" && i.To != trimKind(i.What) {
			text += " → " + line(i.To)
		}
		if i.Why != "" {
			text += ": " + i.Why
		}
		if i.From != "" {
			text += "  (" + line(i.From) + ")"
		}
		fmt.Fprintln(w, text)
	}
	p.printEnv(w)
	switch {
	case p.Done:
		fmt.Fprintf(w, "\nDone. %s was not changed. Next:\n", p.Path)
		steps := []string{
			"Stop " + p.title + " for good: two programs must not use one bot.",
			"Read what was imported, above all skills and SOUL.md: the agent follows it.",
		}
		if p.isBeside() {
			steps = append(steps, "Copy by hand what you want of "+p.configName+" into your own config: "+
				"until then its channels, models and owners do not count.")
		}
		for i, step := range append(steps, "Run parley doctor.") {
			fmt.Fprintf(w, " %d. %s\n", i+1, step)
		}
	case p.Nothing():
		fmt.Fprintln(w, "\nThere is nothing to do.")
	default:
		fmt.Fprintf(w, "\nNothing was changed yet. To do this: %s\n", repeat)
	}
}

// trimKind returns a name without the word before it: "SOUL.md" of "file SOUL.md".
func trimKind(what string) string {
	for i := range what {
		if what[i] == ' ' {
			return what[i+1:]
		}
	}
	return what
}

// printEnv says which secrets the owner has to bring.
func (p *Plan) printEnv(w io.Writer) {
	if len(p.Env) == 0 {
		return
	}
	file := filepath.Join(p.DataDir, "environment")
	fmt.Fprintf(w, "\nsecrets: they are not copied. Write them into %s (chmod 600), one NAME=value a line:\n", file)
	for _, v := range p.Env {
		fmt.Fprintf(w, "  %s=  the value of %s\n", v.Name, line(v.From))
	}
	fmt.Fprintf(w, "The service of parley install-service reads that file; in a shell: set -a; . %s; set +a\n", file)
}
