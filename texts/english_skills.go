package texts

func englishSkills() Skills {
	return Skills{
		Skills: "Skills",
		Agents: "Agents",
		None:   "There are none yet.",
		HowTo: "To add a skill, ask me to write one, or write `skills/NAME/SKILL.md` in my workspace: a line " +
			"`---`, then `name: NAME` and `description: …`, " +
			"a line `---`, and below it what to do. It counts at once.",

		Always:  "(always)",
		Broken:  "broken: %s",
		Lacking: "%s. %s",
		Needs:   "needs %s",
		NoTool:  "there is no tool %s",
		NoModel: "there is no model %s",

		Faults: PageFaults{
			Name:          "its name must be of lower case letters, digits and dashes, at most 64",
			TooBig:        "it is bigger than %d KiB",
			NotText:       "it must be text in UTF-8 and begin with a head between two lines ---",
			OtherName:     "its name is %q, but it lies at %q",
			NoDescription: "there is no description",
			NoText:        "there is nothing below the head",
			Rounds:        "rounds must be from 1 to 100",
			Paths:         "requires.bins must be names, not paths",

			NoKeys:     "line %d: there must be lines of key: value",
			UnknownKey: "line %d: %.40q is not a known key, or occurs twice",
			WrongValue: "line %d: %s must be %s",

			Text:   "text",
			YesNo:  "true or false",
			Number: "a number",
			Names:  "a list of names",

			Folder:  "the folder cannot be read",
			TooMany: "there are more than %d, and no more are read",
		},
	}
}
