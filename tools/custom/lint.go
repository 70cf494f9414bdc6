package custom

// lint returns what the author of a tool should mend although it works (B-040).
func lint(Definition) []string { return nil }
