package sqlite

import "strings"

// A column is one of a table, in the order of its definition.
type column struct {
	name string
	isID bool // its value is the number of the row
}

// columnsOf returns the columns that a CREATE TABLE statement defines.
func columnsOf(sql string) (columns []column) {
	_, body, _ := strings.Cut(sql, "(")
	for _, part := range split(body) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		if len(columns) == maxColumns {
			break
		}
		switch strings.ToUpper(strings.TrimRight(words[0], "(")) {
		case "PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "CONSTRAINT":
			continue // these stand after the columns
		}
		upper := strings.ToUpper(strings.Join(words, " "))
		isID := strings.Contains(upper, " INTEGER") && strings.Contains(upper, " PRIMARY KEY")
		columns = append(columns, column{name: strings.Trim(words[0], "\"`[]'"), isID: isID})
	}
	return columns
}

// split returns the parts of a list up to the bracket that ends it.
func split(list string) (parts []string) {
	depth, start := 0, 0
	quoted := rune(0)
	for i, r := range list {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quoted = r
		case r == '(':
			depth++
		case r == ')' && depth == 0:
			return append(parts, list[start:i])
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, list[start:i])
			start = i + 1
		}
	}
	return append(parts, list[start:])
}
