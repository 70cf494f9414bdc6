//go:build !linux

package changes

import (
	"io/fs"
	"time"
)

// changeTime returns when a file was written, as its times say.
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
