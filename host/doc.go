// Package host deals with the machine that Parley runs on: it hardens the process,
// restricts file permissions, gives up root, gives memory back and watches the space on disks.
package host
