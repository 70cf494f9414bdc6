package discord

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"parley/channels"
	"parley/lazyregexp"
)

// Discord's ids are snowflakes: decimal numbers that begin with the time at which
// they were made, so that later messages have higher ids.
var snowflake = lazyregexp.New(`^[0-9]{1,20}$`)

const (
	discordEpoch  = 1420070400000 // Unix milliseconds
	snowflakeBits = 22            // below the time
)

// compareIDs compares two ids by age, the older first.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// laterID returns the younger of two ids.
func laterID(a, b string) string {
	if compareIDs(a, b) < 0 {
		return b
	}
	return a
}

// previousID returns the id just before id.
func previousID(id string) string {
	n, _ := strconv.ParseUint(id, 10, 64)
	return strconv.FormatUint(max(n, 1)-1, 10)
}

// idBefore returns the id just before those of messages written at that time.
func idBefore(at time.Time) string {
	return previousID(strconv.FormatInt(max(at.UnixMilli()-discordEpoch, 1)<<snowflakeBits, 10))
}

// timeOf returns when an id was made.
func timeOf(id string) time.Time {
	n, _ := strconv.ParseInt(id, 10, 64)
	return time.UnixMilli(n>>snowflakeBits + discordEpoch)
}

// originalID returns the id that Discord has for a message of ours, which may be
// an edit of another. It is "" for one that is none of Discord's.
func originalID(id string) string {
	id, _, _ = strings.Cut(id, "e")
	if !snowflake.MatchString(id) {
		return ""
	}
	return id
}

func newReceipt(channel, message string) channels.Receipt {
	return channels.Receipt(channel + "/" + message)
}

// messagePath returns the path of the message of rc in the API.
func messagePath(rc channels.Receipt) (string, error) {
	channel, message, _ := strings.Cut(string(rc), "/")
	if !snowflake.MatchString(channel) || !snowflake.MatchString(message) {
		return "", channels.ForGood("%q is no receipt of discord", rc)
	}
	return "/channels/" + channel + "/messages/" + message, nil
}
