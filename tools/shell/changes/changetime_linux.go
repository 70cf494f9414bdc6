package changes

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when a file was written, or its times were set.
func changeTime(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
