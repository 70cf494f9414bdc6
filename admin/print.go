package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"parley/audit"
	"parley/backup"
	"parley/channels/admission"
	"parley/chat"
	"parley/web"
)

// Moment returns a time as lists show it.
func Moment(t time.Time, zone *time.Location) string { return t.In(zone).Format("2006-01-02 15:04") }

// A table prints rows whose cells stand below each other. [table.flush] prints them.
type table struct {
	out  *tabwriter.Writer
	text *bytes.Buffer // what out wrote
	to   io.Writer
}

func (c *Client) newTable() table {
	text := &bytes.Buffer{}
	return table{out: tabwriter.NewWriter(text, 0, 0, 2, ' ', 0), text: text, to: c.Out}
}

func (t table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.out, "\t")
		}
		fmt.Fprint(t.out, cell)
	}
	fmt.Fprintln(t.out)
}

// flush prints the rows, without the blanks that follow the last cell of a row.
func (t table) flush() error {
	if err := t.out.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := fmt.Fprintln(t.to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// count returns n with the word for it, which ends with an s unless n is 1.
func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// Status returns the gateway's state.
func (c *Client) Status(ctx context.Context) (o web.Overview, err error) {
	err = c.Ask(ctx, "GET", "/api/status", nil, &o)
	return o, err
}

// PrintStatus prints the gateway's state, channels and pending work.
func (c *Client) PrintStatus(ctx context.Context) error {
	o, err := c.Status(ctx)
	if err != nil {
		return err
	}
	t := c.newTable()
	working := "works"
	if c.Running() {
		t.row("up since", Moment(o.Began, c.Zone))
	} else {
		t.row("no gateway runs")
		working = "waits for a gateway"
	}
	t.row("version", o.Version)
	t.row("model", o.Model)
	for _, one := range o.Gateways {
		t.row(one.State, one.Name, one.Version, "since "+Moment(one.Since, c.Zone), one.Page)
	}
	for _, ch := range o.Channels {
		if ch.Name == "api" && ch.Trouble == "" && ch.Pending == 0 {
			continue // it is always there, and most people never set it up
		}
		row := []any{ch.Name, cmp.Or(ch.Trouble, working), fmt.Sprintf("waiting: %d", ch.Pending)}
		if ch.Dropped > 0 {
			row = append(row, fmt.Sprintf("unknown senders: %d", ch.Dropped))
		}
		t.row(row...)
	}
	t.row("dead letters", letters(len(o.DeadReplies), len(o.DeadMessages)))
	if o.Disk != "" {
		t.row("disk", o.Disk)
	}
	for _, p := range o.Pairings {
		t.row("pairing", chat.OneLine(p.Name), p.At.Channel, "parley pair "+p.Code)
	}
	for _, warning := range append(o.Reasons, o.Warnings...) {
		t.row("warning", chat.OneLine(warning))
	}
	return t.flush()
}

// letters counts dead letters.
func letters(replies, messages int) string {
	r, m := "replies", "messages"
	if replies == 1 {
		r = "reply"
	}
	if messages == 1 {
		m = "message"
	}
	return fmt.Sprintf("%d %s, %d %s", replies, r, messages, m)
}

// PrintSessions prints all conversations, or where the words were said if there are any.
func (c *Client) PrintSessions(ctx context.Context, words []string) error {
	var all struct {
		Talks []chat.Talk
		Found []chat.Find
	}
	if err := c.Ask(ctx, "GET", SessionsPath(words), nil, &all); err != nil {
		return err
	}
	t := c.newTable()
	for _, s := range all.Talks {
		t.row(s.Session, Moment(s.Last, c.Zone), chat.OneLine(s.Title))
	}
	if len(words) > 0 && len(all.Found) == 0 {
		_, err := fmt.Fprintln(c.Out, "Nothing like that was found in what is stored.")
		return err
	}
	for _, f := range all.Found {
		t.row(f.Session, Moment(f.Entry.Time, c.Zone), chat.OneLine(f.Entry.Text))
	}
	return t.flush()
}

// SessionsPath returns where the owner's API lists conversations, or where words were said if there are any.
func SessionsPath(words []string) string {
	return "/api/sessions?q=" + url.QueryEscape(strings.Join(words, " "))
}

func sessionPath(session string) string { return "/api/sessions/" + url.PathEscape(session) }

// sessionError returns err, in words for the operator if it is that there is no such session.
func sessionError(session string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("nothing is stored of a conversation %s: parley sessions list shows all there are; "+
			"it may have been deleted, or removed because it was old", session)
	}
	return err
}

// PrintSession prints a conversation with its tool calls.
func (c *Client) PrintSession(ctx context.Context, session string, asJSON bool) error {
	if asJSON {
		return sessionError(session, c.PrintAnswer(ctx, sessionPath(session)))
	}
	var conversation struct{ Entries []chat.Entry }
	if err := c.Ask(ctx, "GET", sessionPath(session), nil, &conversation); err != nil {
		return sessionError(session, err)
	}
	for _, e := range conversation.Entries {
		_, err := fmt.Fprintf(c.Out, "%s  %s %s\n", Moment(e.Time, c.Zone), e.Kind, chat.OneLine(e.Who))
		if err != nil {
			return err
		}
		for line := range strings.Lines(chat.Printable(e.Text)) {
			fmt.Fprintln(c.Out, "    "+strings.TrimRight(line, "\n"))
		}
	}
	return nil
}

// ExportSession prints a conversation as Markdown.
func (c *Client) ExportSession(ctx context.Context, session string) error {
	return sessionError(session, c.PrintAnswer(ctx, sessionPath(session)+"/export"))
}

// DeleteSession deletes a conversation.
func (c *Client) DeleteSession(ctx context.Context, session string) error {
	return sessionError(session, c.Ask(ctx, "DELETE", sessionPath(session), nil, nil))
}

// Recording returns what was recorded of a session.
func (c *Client) Recording(ctx context.Context, session string) ([]byte, error) {
	answer, err := c.Request(ctx, "GET", sessionPath(session)+"/recording", nil)
	if err != nil {
		return nil, sessionError(session, err)
	}
	defer answer.Close()
	return io.ReadAll(answer)
}

// PrintAnswer prints what the owner's API answers to a request for path.
func (c *Client) PrintAnswer(ctx context.Context, path string) error {
	answer, err := c.Request(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(c.Out, answer)
	return errors.Join(err, answer.Close())
}

// PrintAudit prints the end of the audit log and verifies all of it.
func (c *Client) PrintAudit(ctx context.Context, asJSON bool) error {
	var log struct {
		Events  []audit.Event
		Verdict struct {
			Whole bool
			Why   string
		}
	}
	if err := c.Ask(ctx, "GET", "/api/audit?verify=yes", nil, &log); err != nil {
		return err
	}
	t := c.newTable()
	if asJSON {
		if err := json.NewEncoder(c.Out).Encode(log); err != nil {
			return err
		}
		log.Events = nil
	}
	for _, e := range log.Events {
		t.row(e.Time.In(c.Zone).Format(time.DateTime), e.Kind, chat.OneLine(e.Who), chat.OneLine(e.What))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if !log.Verdict.Whole {
		return errors.New("the audit log is not as it was written: " + log.Verdict.Why)
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintln(c.Out, "The audit log is as it was written.")
	return err
}

// Pair approves the person who was given code and prints who that is.
func (c *Client) Pair(ctx context.Context, code string) error {
	var p admission.Pairing
	err := c.Ask(ctx, "POST", "/api/pairings/"+url.PathEscape(code)+"/approve", nil, &p)
	if errors.Is(err, ErrNotFound) {
		return errors.New("nobody has that code, or it is older than an hour: parley status shows who asks")
	}
	if err != nil {
		return err
	}
	name := cmp.Or(chat.OneLine(p.Name), "Somebody without a name")
	_, err = fmt.Fprintf(c.Out, "%[1]s (%[2]s:%[3]s) may talk to me now.\n"+
		"To make this person an owner, put \"%[2]s:%[3]s\" into \"owners\" of the config.\n",
		name, p.At.Channel, p.Sender)
	return err
}

// Backup writes an archive to a new file: all of it, or none.
func (c *Client) Backup(ctx context.Context, file string) error {
	// Asked first: a gateway that is opened for it removes the drafts of backups.
	answer, err := c.Request(ctx, "GET", "/api/backup", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	err = backup.WriteFile(ctx, file, func(w io.Writer) error {
		_, err := io.Copy(w, answer)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "wrote %s. It holds all that was said, and may hold secrets of the config: "+
		"keep it as you keep the data folder.\n", file)
	return err
}

// PrintLink invites the person of that name and prints a link that signs them in once.
func (c *Client) PrintLink(ctx context.Context, person string) error {
	var made struct {
		Link    string
		Expires time.Time
	}
	if err := c.Ask(ctx, "POST", "/api/people", map[string]string{"Name": person}, &made); err != nil {
		return err
	}
	until := Moment(made.Expires, c.Zone)
	_, err := fmt.Fprintf(c.Out, "%s\nIt signs in %s, once, until %s.\n", made.Link, person, until)
	return err
}

// PrintKey prints a new API key of a person, whose sessions begin with prefix if
// that is not "".
func (c *Client) PrintKey(ctx context.Context, person, prefix string) error {
	in := map[string]string{"Person": person}
	if prefix != "" {
		in["Prefix"] = prefix
	}
	var made struct{ Secret string }
	err := c.Ask(ctx, "POST", "/api/keys", in, &made)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("nobody has the name %s: parley link %[1]s lets them in", person)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s\nIt is shown only this once; the owner's pages revoke it.\n", made.Secret)
	return err
}
