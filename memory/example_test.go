package memory_test

import (
	"fmt"
	"io/fs"

	"parley/chat"
	"parley/memory"
)

// notes is a whole driver: the files of a workspace, kept in memory.
type notes map[string]string

func (n notes) ReadFile(name string) ([]byte, error) {
	text, there := n[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func Example() {
	p := memory.Prompt{Files: notes{"USER.md": "Name: Ann\n", "MEMORY.md": "Takes her tea without milk.\n"}}
	fmt.Println(p.Remembered(chat.TheOwner))
	// Output:
	// Name: Ann
	// Takes her tea without milk.
}
