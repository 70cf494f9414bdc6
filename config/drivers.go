package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Drivers lists what the file can name.
type Drivers struct {
	Channels   []Driver // in the order in which they are listed to people
	Models     []Driver
	Stores     []Driver
	Categories func() []string // those of the tools there are, sorted
}

// A Driver makes the channels, models or stores of one type.
type Driver struct {
	Name string     // the type
	New  func() any // returns a pointer to the struct of the driver's own keys
}

// DriverOf returns the Driver of the struct C.
func DriverOf[C any](name string) Driver {
	return Driver{Name: name, New: func() any { return new(C) }}
}

// A Network is a Driver's struct for a channel on which people have ids: who may
// talk is listed under the key allow, people can be owners, and there can be several
// such channels with labels.
type Network interface {
	// CheckID returns an error that says what an id must be.
	CheckID(id string) error
}

// names lists the types.
func names(all []Driver) (list []string) {
	for _, d := range all {
		list = append(list, d.Name)
	}
	return list
}

// channel returns a new Channel of that type at its defaults, or nil.
func (d *decoder) channel(kind string) *Channel {
	c := &Channel{Type: kind, Driver: d.newDriver(d.drivers.Channels, kind)}
	if c.Driver == nil {
		return nil
	}
	if _, ok := c.Driver.(Network); ok {
		c.Senders = &Senders{}
	}
	return c
}

// newDriver returns the struct of the driver for that type at its defaults, or nil.
func (d *decoder) newDriver(all []Driver, kind string) any {
	i := slices.IndexFunc(all, func(d Driver) bool { return d.Name == kind })
	if i < 0 {
		return nil
	}
	made := all[i].New()
	d.setDefaults(made)
	return made
}

// channels reads an object whose keys are "type" or "type:label".
func (d *decoder) channels(v hujson.Value, path string) map[string]*Channel {
	all := map[string]*Channel{}
	for name, val := range d.members(v, path) {
		key := join(path, name)
		kind, label, labelled := strings.Cut(name, ":")
		c := d.channel(kind)
		switch {
		case labelled && !simple.MatchString(label):
			d.fail(val.at, key, `the label after ":" is made of letters, digits, - and _`)
		case c == nil || labelled && c.Senders == nil:
			d.fail(val.at, key, "no channel of this type; allowed: "+d.channelTypes())
		case c.Senders == nil && val.Value.Value.Kind() == 'n': // as if it were left out
		default:
			d.value(val.Value, reflect.ValueOf(c).Elem(), key, "")
			all[name] = c
		}
	}
	return all
}

// channelTypes lists for people what channels can be named.
func (d *decoder) channelTypes() string {
	var labelled []string
	for _, name := range names(d.drivers.Channels) {
		if d.channel(name).Senders != nil {
			labelled = append(labelled, name+":LABEL")
		}
	}
	list := strings.Join(names(d.drivers.Channels), ", ")
	switch last := len(labelled) - 1; {
	case last == 0:
		list += ", and " + labelled[0]
	case last > 0:
		list += ", and " + strings.Join(labelled[:last], ", ") + " or " + labelled[last]
	}
	return list
}

// choose gives an entry whose type stands in it the struct of its driver. It
// reports false if the type is unknown.
func (d *decoder) choose(v hujson.Value, entry any) bool {
	switch e := entry.(type) {
	case *Model:
		e.Driver = d.newDriver(d.drivers.Models, d.typeIn(v))
		return e.Driver != nil
	case *Store:
		e.Driver = d.newDriver(d.drivers.Stores, cmp.Or(d.typeIn(v), e.Type))
		return e.Driver != nil
	}
	return true
}

// typeIn returns the value of the key type in the object v, or "".
func (d *decoder) typeIn(v hujson.Value) string {
	obj, _ := v.Value.(*hujson.Object)
	if obj == nil {
		return ""
	}
	for _, m := range obj.Members {
		if m.Name.Value.(hujson.Literal).String() == "type" && m.Value.Value.Kind() == '"' {
			kind, _, _ := expand(m.Value.Value.(hujson.Literal).String(), d.lookup)
			return kind
		}
	}
	return ""
}
