// Package trust lets owners see which files count as untrusted content because of how they
// came into being (R-S12), and has those that they name count as trusted again.
package trust

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/workspace"
)

const maxListed = 30 // files

// A Shell runs commands. WhileNoneWrites calls do while none is at work that may write untrusted
// content, and reports whether it did.
type Shell interface {
	WhileNoneWrites(ctx context.Context, do func() error) (done bool, err error)
}

// Command returns what answers the slash command /trust about files. It notes in audit what an owner
// has decided.
func Command(
	files *workspace.Workspace, shell Shell, audit func(kind, who, what string), say *texts.Catalogue,
) func(context.Context, chat.Message) (string, error) {
	return manager{files, shell, audit, say.Tools.Trust}.answer
}

// A manager answers the slash command /trust.
type manager struct {
	files *workspace.Workspace
	shell Shell
	audit func(kind, who, what string)
	texts texts.Trust
}

// answer lists what counts as untrusted, or has what is named count as trusted.
func (m manager) answer(ctx context.Context, said chat.Message) (string, error) {
	if said.From.Role != chat.Owner || said.Group {
		return m.texts.OnlyOwners, nil
	}
	_, rest := chat.Word(said.Text)
	name := strings.Trim(strings.TrimSpace(rest), "`\"'")
	all, err := m.untrusted()
	switch {
	case err != nil:
		return "", err
	case name == "":
		return m.list(all), nil
	case name == "all":
		name = "."
	}
	return m.trust(ctx, said, name, all)
}

// untrusted returns the records of files whose content comes from others than owners, by name.
func (m manager) untrusted() ([]workspace.Origin, error) {
	all, err := workspace.OriginsOf(m.files).All()
	all = slices.DeleteFunc(all, func(o workspace.Origin) bool { return chat.Person(o.Author) == chat.TheOwner })
	slices.SortFunc(all, func(a, b workspace.Origin) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// list shows files, folders of which everything is untrusted first.
func (m manager) list(all []workspace.Origin) string {
	if len(all) == 0 {
		return m.texts.None
	}
	slices.SortStableFunc(all, func(a, b workspace.Origin) int {
		switch {
		case a.Below == b.Below:
			return 0
		case a.Below:
			return -1
		}
		return 1
	})
	var b strings.Builder
	b.WriteString(m.texts.List + "\n")
	for _, o := range all[:min(len(all), maxListed)] {
		line := m.texts.File
		if o.Below {
			line = m.texts.Folder
		}
		b.WriteString("\n" + line.With(shown(o.Name)))
	}
	if more := len(all) - maxListed; more > 0 {
		b.WriteString("\n" + m.texts.More.With(more))
	}
	return b.String() + "\n\n" + m.texts.End
}

// shown returns the name of a file as one that can be shown.
func shown(name string) string { return strings.ReplaceAll(chat.Inline(name, 200), "`", "'") }

// trust removes the records of the file or folder called name, and of all that is in it.
func (m manager) trust(
	ctx context.Context, said chat.Message, name string, all []workspace.Origin,
) (string, error) {
	at, err := m.files.Resolve(name)
	if err != nil { // no file can have that name
		return m.texts.Unmarked.With(shown(name)), nil
	}
	isMeant := func(o workspace.Origin) bool { return at.String() == "." || workspace.Within(o.Name, at.String()) }
	meant := slices.DeleteFunc(slices.Clone(all), func(o workspace.Origin) bool { return !isMeant(o) })
	if above, found := folderAbove(at.String(), all); found && len(meant) == 0 {
		return m.texts.InFolder.With(shown(at.String()), shown(above), shown(above)), nil
	}
	if len(meant) == 0 {
		return m.texts.Unmarked.With(shown(at.String())), nil
	}
	who := said.At.Channel + ":" + said.From.ID
	isDone, err := m.shell.WhileNoneWrites(ctx, func() error {
		for _, o := range meant {
			if err := workspace.OriginsOf(m.files).Remove(o); err != nil {
				return fmt.Errorf("trust %s: %w", o.Name, err)
			}
		}
		m.audit("approval", who, fmt.Sprintf("trusts the file %s: %d records", at.String(), len(meant)))
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case !isDone:
		return m.texts.Busy, nil
	}
	return m.texts.Trusted.Of(len(meant), shown(at.String())), nil
}

// folderAbove returns the innermost folder that name is in and of which everything is untrusted.
func folderAbove(name string, all []workspace.Origin) (folder string, found bool) {
	for folder = path.Dir(name); folder != "." && folder != "/"; folder = path.Dir(folder) {
		if slices.ContainsFunc(all, func(o workspace.Origin) bool { return o.Below && o.Name == folder }) {
			return folder, true
		}
	}
	return "", false
}
