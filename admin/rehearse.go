package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler/rehearsal"
)

// A Rehearsal is what parley cron rehearse is asked for.
type Rehearsal struct {
	Days   int
	Ask    bool // each job is asked once of its model
	Yes    bool // nobody is asked whether that may cost something
	AsJSON bool
	In     io.Reader // where the answer comes from
}

// Print prints what the scheduled jobs would do in the coming days.
func (o Rehearsal) Print(ctx context.Context, c *Client) error {
	query := "?days=" + strconv.Itoa(o.Days)
	var r rehearsal.Report
	if err := c.Ask(ctx, "GET", "/api/cron/rehearsal"+query, nil, &r); err != nil {
		return err
	}
	if o.Ask {
		if may, err := o.mayAsk(c, r); err != nil || !may {
			return err
		}
		r = rehearsal.Report{}
		if err := c.Ask(ctx, "POST", "/api/cron/rehearsal"+query, nil, &r); err != nil {
			return err
		}
	}
	if o.AsJSON {
		return json.NewEncoder(c.Out).Encode(r)
	}
	return printRehearsal(c, r)
}

// mayAsk says what asking the models takes, and reports whether it may be done.
func (o Rehearsal) mayAsk(c *Client, r rehearsal.Report) (bool, error) {
	takes, asked := r.AskTakes()
	estimate := fmt.Sprintf("Asking %s once takes %s", count(asked, "job"), takes)
	if o.AsJSON && !o.Yes {
		return false, fmt.Errorf("%s: say --yes to have them asked", estimate)
	}
	if o.Yes {
		return true, nil
	}
	fmt.Fprint(c.Out, estimate+". Ask them? [y/N] ")
	line, _ := bufio.NewReader(o.In).ReadString('\n') // without an answer it is a no
	answer := strings.ToLower(strings.TrimSpace(line))
	if answer == "y" || answer == "yes" {
		return true, nil
	}
	_, err := fmt.Fprintln(c.Out, "Nothing was asked.")
	return false, err
}

func printRehearsal(c *Client, r rehearsal.Report) error {
	fmt.Fprintf(c.Out, "From %s to %s\n\n", Moment(r.From, c.Zone), Moment(r.Until, c.Zone))
	t := c.newTable()
	t.row("JOB", "WHEN", "FIRST", "RUNS", "TOKENS", "MONEY")
	for _, j := range r.Jobs {
		first := "-"
		if len(j.Times) > 0 {
			first = Moment(j.Times[0], c.Zone)
		}
		tokens, cost := fmt.Sprint(j.Tokens), fmt.Sprintf("%.4f", j.Cost)
		if !j.Known {
			tokens, cost = "not known yet", "-"
		}
		t.row(chat.OneLine(j.Name), j.When, first, j.Runs, tokens, cost)
	}
	tokens, cost := fmt.Sprint(r.Tokens), fmt.Sprintf("%.4f", r.Cost)
	if !r.TokensKnown() {
		tokens, cost = "not known yet", "-"
	}
	t.row("all", "", "", r.Runs, tokens, cost)
	if err := t.flush(); err != nil {
		return err
	}
	if r.Unknown > 0 {
		fmt.Fprintf(c.Out, "%s\n", rehearsal.NotCounted(r.Unknown))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(c.Out, "warning: %s\n", chat.OneLine(w.Text))
	}
	for _, j := range r.Jobs {
		if j.Answer != nil {
			printAnswer(c, j)
		}
	}
	if r.Asked {
		fmt.Fprintln(c.Out, "\nWhat the models took counts as used today.")
	}
	_, err := fmt.Fprintln(c.Out, "Nothing was sent, and nothing was changed.")
	return err
}

// printAnswer prints what came of asking a job.
func printAnswer(c *Client, j rehearsal.Job) {
	a := j.Answer
	took := time.Duration(a.Seconds) * time.Second
	fmt.Fprintf(c.Out, "\n%s: %s, %d tokens, %v\n", chat.OneLine(j.Name), a.Outcome, a.Tokens, took)
	indented := func(text string) {
		for line := range strings.Lines(chat.Printable(text)) {
			fmt.Fprintln(c.Out, "    "+strings.TrimRight(line, "\n"))
		}
	}
	if len(a.Sends) == 0 {
		indented(a.Text)
	}
	for _, s := range a.Sends {
		fmt.Fprintf(c.Out, "  would be sent to %s:\n", chat.OneLine(s.To))
		indented(s.Text)
	}
	for _, call := range a.NotDone {
		fmt.Fprintln(c.Out, "  not done: "+chat.OneLine(call))
	}
	for _, name := range a.Files {
		fmt.Fprintln(c.Out, "  changed in the copy of the workspace: "+chat.OneLine(name))
	}
}
