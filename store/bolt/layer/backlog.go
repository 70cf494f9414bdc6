package layer

// A Backlog is what readers see and the log has not yet.
type Backlog struct {
	Changes []Change
	size    int // bytes
}

// Bounds of a Backlog. What goes beyond waits for the disk: if that is full, it is refused.
const (
	MaxBacklog      = 4096    // changes
	MaxBacklogBytes = 4 << 20 // of their keys and values
)

// Takes reports whether changes fit into b.
func (b *Backlog) Takes(changes []Change) bool {
	return len(b.Changes)+len(changes) <= MaxBacklog && b.size+sizeOf(changes) <= MaxBacklogBytes
}

// Add adds changes, which b takes.
func (b *Backlog) Add(changes []Change) {
	b.Changes = append(b.Changes, changes...)
	b.size += sizeOf(changes)
}

func sizeOf(changes []Change) (size int) {
	for _, c := range changes {
		size += len(c.Key) + len(c.Val)
	}
	return size
}
