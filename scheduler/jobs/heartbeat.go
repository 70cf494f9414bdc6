package jobs

import "strings"

// maxHeartbeat is how much of the list the agent is shown, in bytes.
const maxHeartbeat = 32 << 10

// HeartbeatText returns the message that makes the agent work on the open items in
// text, which is the content of file.
func HeartbeatText(file, text string) string {
	if len(text) > maxHeartbeat {
		text = strings.ToValidUTF8(text[:maxHeartbeat], "")
		text += "\n(The rest of " + file + " is left out: it is too long.)"
	}
	return "Look after the open items of " + file + ", which are below: " +
		"do what is due, and tick off in the file what is done for good. " +
		"Tell the person only what they should know now.\n\n" + text
}

// HasOpenItem reports whether text has a list item that is not ticked off. Comments
// and code are ignored.
func HasOpenItem(text string) bool {
	code, comment := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case comment || strings.HasPrefix(line, "<!--"):
			comment = !strings.Contains(line, "-->")
		case strings.HasPrefix(line, "```"):
			code = !code
		case code:
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "), strings.HasPrefix(line, "+ "):
			item := strings.TrimSpace(line[2:])
			if item != "" && item != "[ ]" && !strings.HasPrefix(strings.ToLower(item), "[x]") {
				return true
			}
		}
	}
	return false
}
