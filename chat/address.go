package chat

import "parley/lazyregexp"

// login matches what a URL has before its @, behind the scheme. A quotation mark
// in it is a part of it unless a list of URLs is what it looks like.
var (
	// login matches what a URL has between the scheme and "@". A quotation mark is
	// part of it, unless the text looks like a list of URLs.
	login = lazyregexp.New(
		"(?i)(https?:[/\\\\]*|[a-z][a-z0-9+.-]*:[/\\\\]{2})" + "(?:[^\\s/?#<>\"'`]*|[^\\s/?#<>,\\[\\]{}]*)@",
	)
	unfinished = lazyregexp.New(`(?i)(https?:[/\\]*|[a-z][a-z0-9+.-]*:[/\\]{2})[^\s/?#]+$`)
)

// hiddenLogin replaces a user name and password.
const hiddenLogin = "…"

// HideLogins returns text without the user names and passwords of the addresses in
// it, as in https://…@example.com. Everything that shows or logs an address uses
// it, before cutting the text: otherwise half a password would be visible.
func HideLogins(text string) string {
	return login.ReplaceAllString(text, "${1}"+hiddenLogin+"@")
}

// HideUnfinishedLogins is HideLogins for a text that is still being received. It
// also hides an address at the end whose host may turn out to be a user name.
func HideUnfinishedLogins(text string) string {
	return unfinished.ReplaceAllString(HideLogins(text), "${1}"+hiddenLogin)
}
