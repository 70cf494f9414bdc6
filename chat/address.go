package chat

import "regexp"

// login matches what a URL has before its @, behind the scheme. A quotation mark
// in it is a part of it unless a list of URLs is what it looks like.
var (
	login = regexp.MustCompile(
		"(?i)(https?:[/\\\\]*|[a-z][a-z0-9+.-]*:[/\\\\]{2})" + "(?:[^\\s/?#<>\"'`]*|[^\\s/?#<>,\\[\\]{}]*)@",
	)
	unfinished = regexp.MustCompile(`(?i)(https?:[/\\]*|[a-z][a-z0-9+.-]*:[/\\]{2})[^\s/?#]+$`)
)

// hiddenLogin stands for a user and a password.
const hiddenLogin = "…"

// HideLogins returns text as people may see it: the addresses in it show nobody's
// user and password, as in https://…@example.com. Whatever shows or logs an
// address is to use it, and before it cuts the text: half a password is shown
// otherwise.
func HideLogins(text string) string {
	return login.ReplaceAllString(text, "${1}"+hiddenLogin+"@")
}

// HideUnfinishedLogins is HideLogins for a text that is still coming in: an
// address at its end whose host is not known to be one yet is not shown.
func HideUnfinishedLogins(text string) string {
	return unfinished.ReplaceAllString(HideLogins(text), "${1}"+hiddenLogin)
}
