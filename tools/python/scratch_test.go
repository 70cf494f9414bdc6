package python

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Code that puts a pipe where a folder was listed does not block its run forever.
func TestPipeForFolder(t *testing.T) {
	s, err := makeScratch()
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	err = errors.Join(
		os.WriteFile(filepath.Join(s.dir, "b.txt"), nil, 0o600), os.WriteFile(filepath.Join(s.dir, "a.txt"), nil, 0o600),
		syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := (listing{s.root}).ReadDir("pipe"); err == nil {
		t.Errorf("a pipe has the entries %v", entries)
	}
	if _, err := s.read("pipe", maxResult); err == nil {
		t.Error("a pipe was read")
	}
	if got := fmt.Sprint(s.files()); got != "[a.txt b.txt]" || s.isFull() {
		t.Errorf("files %s, full: %t", got, s.isFull())
	}
}
