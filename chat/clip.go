package chat

// Clip returns the first n characters of text, and behind them more if that is not all.
func Clip(text string, n int, more string) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + more
		}
	}
	return text
}
