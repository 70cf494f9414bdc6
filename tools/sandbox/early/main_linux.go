package early

import "os"

func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case Launcher:
		os.Exit(launch())
	case Reaper:
		os.Exit(runReaper(os.Args[2:]))
	case Attempts:
		os.Exit(runAttempts(os.Args[2:]))
	case Victim:
		os.Exit(beVictim())
	}
}
