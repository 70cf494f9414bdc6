package layout

import (
	"fmt"
	"strconv"
)

// Grouped returns a number with its thousands apart.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	first := 0
	if n < 0 {
		first = 1 // after the sign
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// Money returns an amount with as many digits as it needs. It has no currency: that is the one of the prices in the
// config.
func Money(v float64) string {
	if v > 0 && v < .1 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
