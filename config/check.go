package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/scheduler"
	"parley/tools/mcp"
	"parley/tools/network"
	"parley/web"
)

// A Checker is a struct that knows more about its values than tags can say.
type Checker interface {
	// Check reports what is wrong: a key of the struct, and what its value must be
	// or is. Of several reports about one key the first counts.
	Check(report func(key, problem string))
}

// A checker finds the values that are well formed and yet make no sense.
type checker struct {
	config *Config
	d      *decoder
}

// check notes in d what is wrong with c.
func check(c *Config, d *decoder) {
	k := &checker{config: c, d: d}
	k.value(reflect.ValueOf(c).Elem(), "", "")
	k.folders()
	k.owners()
	for name, m := range c.Models {
		k.oneOf(join("models", name)+".type", m.Type, names(d.drivers.Models)...)
	}
	k.oneOf("store.type", c.Store.Type, names(d.drivers.Stores)...)
	k.channels()
	k.http()
	k.limits()
	k.rules()
	k.mcpServers()
	for i, text := range c.Tools.Web.AllowPrivate {
		if _, err := network.ParseNetwork(text); err != nil {
			k.fail(fmt.Sprintf("tools.web.allowPrivate[%d]", i), "%v", err)
		}
	}
	if err := scheduler.CheckSpec(c.Dream.Cron); c.Dream.Cron != "" && err != nil {
		k.fail("dream.cron", `%v; allowed: such as "0 4 * * *", or "" for never`, err)
	}
}

// value checks v and all that is in it by the tags.
func (k *checker) value(v reflect.Value, key string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			k.value(v.Elem(), key, tag)
		}
	case reflect.Struct:
		for _, f := range fields(v) {
			k.value(f.value, join(key, f.name), f.tag)
		}
		for _, s := range structs(v) {
			if c, ok := s.Addr().Interface().(Checker); ok {
				c.Check(func(name, problem string) { k.fail(key+"."+name, "%s", problem) })
			}
		}
	case reflect.Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			k.value(v.MapIndex(name), join(key, name.String()), tag)
		}
	case reflect.Slice:
		for i := range v.Len() {
			k.value(v.Index(i), fmt.Sprintf("%s[%d]", key, i), tag)
		}
	default:
		if tag.Get("optional") == "" || !v.IsZero() {
			k.single(v, key, tag)
		}
	}
}

// single checks a text, a number or a length of time.
func (k *checker) single(v reflect.Value, key string, tag reflect.StructTag) {
	if allowed, ok := tag.Lookup("allowed"); ok {
		k.oneOf(key, v.String(), strings.Split(allowed, ", ")...)
	}
	if tag.Get("names") != "" {
		k.oneOf(key, v.String(), slices.Sorted(maps.Keys(k.config.Models))...)
	}
	if schemes, ok := tag.Lookup("url"); ok {
		k.url(key, v.String(), strings.Fields(schemes)...)
	}
	if tag.Get("listen") != "" {
		k.listen(key, v.String())
	}
	if _, ok := tag.Lookup("from"); ok {
		k.inRange(v, key, tag)
	}
}

// inRange checks a number or a length of time by the tags from and to.
func (k *checker) inRange(v reflect.Value, key string, tag reflect.StructTag) {
	n := v.Convert(reflect.TypeFor[float64]()).Float()
	must := "must be"
	if v.Type() == reflect.TypeFor[int]() {
		must = fmt.Sprintf("is %d, must be", v.Int())
	}
	from := tag.Get("from")
	to, limited := tag.Lookup("to")
	switch {
	case limited && (n < number(from) || n > number(to)):
		k.fail(key, "%s from %s to %s%s", must, from, to, orZero(v, tag))
	case n < number(from):
		k.fail(key, "%s %s or more%s", must, from, orZero(v, tag))
	}
}

// number returns the number, or the length of time in nanoseconds, that text is.
func number(text string) float64 {
	if d, err := parseDuration(text); err == nil {
		return float64(d)
	}
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// fail notes a problem at key, or where it would stand, unless key has one.
func (k *checker) fail(key, format string, args ...any) {
	if k.d.failed(key) {
		return
	}
	for path := key; ; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		if at, ok := k.d.at[path]; ok || path == "" {
			k.d.fail(at, key, fmt.Sprintf(format, args...))
			return
		}
	}
}

// show returns value for an error, unless it must not be seen.
func (k *checker) show(key, value string) string {
	if k.d.private[key] {
		return "the value"
	}
	return fmt.Sprintf("%+q", value)
}

func (k *checker) oneOf(key, value string, allowed ...string) {
	list := strings.Join(allowed, ", ")
	switch {
	case slices.Contains(allowed, value):
	case value == "":
		k.fail(key, "is missing; allowed: %s", list)
	default:
		k.fail(key, "%s is not known; allowed: %s", k.show(key, value), list)
	}
}

// listen takes an address of this machine.
func (k *checker) listen(key, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 0 || n > 65535 {
		k.fail(key, `must be an address and a port such as "127.0.0.1:8081"`)
	}
}

// url checks an address. It is not shown, because it may hold a password.
func (k *checker) url(key, value string, schemes ...string) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		k.fail(key, "must be an address such as %s://host/path", schemes[0])
	}
}

// folders keeps secrets and state out of the agent's reach.
func (k *checker) folders() {
	c := k.config
	if _, err := time.LoadLocation(c.Timezone); err != nil {
		k.fail("timezone", `%s is no time zone; allowed: names such as "Europe/Berlin", or "UTC"`,
			k.show("timezone", c.Timezone))
	}
	if inside(c.DataDir, c.Workspace) {
		k.fail("workspace", "must not hold dataDir: the agent could read and change the store")
	}
	if c.Found && inside(filepath.Dir(c.File), c.Workspace) {
		k.fail("workspace", "must not hold the config file: the agent could read and change it")
	}
}

// inside says whether path is dir or lies in it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// owners takes "console", "web", and people of networks by ids that never change
// hands (R-S7).
func (k *checker) owners() {
	for i, owner := range k.config.Owners {
		key := fmt.Sprintf("owners[%d]", i)
		channel, id := owner, ""
		if at := strings.LastIndex(owner, ":"); at >= 0 {
			channel = owner[:at]
			id = owner[at+1:]
		}
		kind, label, labelled := strings.Cut(channel, ":")
		c := k.d.channel(kind)
		switch {
		case c == nil, labelled && !simple.MatchString(label), (c.Senders == nil) != (channel == owner):
			k.fail(key, `is no owner; allowed: "console", "web", `+
				`or a channel's name and a person's numeric id, such as "telegram:123456"`)
		case c.Senders != nil:
			if err := c.Driver.(Network).CheckID(id); err != nil {
				k.fail(key, "is no owner: the id %v", err)
			}
		}
	}
}

// channels checks who may talk, and that no two channels share what each needs for
// itself.
func (k *checker) channels() {
	used := map[string]string{} // value -> the channel that has it
	for _, name := range slices.Sorted(maps.Keys(k.config.Channels)) {
		c := k.config.Channels[name]
		if c.Senders == nil {
			continue
		}
		path := join("channels", name)
		for i, id := range c.Senders.Allow {
			if err := c.Driver.(Network).CheckID(id); err != nil && id != "*" {
				k.fail(fmt.Sprintf("%s.allow[%d]", path, i), `%v; or "*" for everybody`, err)
			}
		}
		for _, f := range fields(reflect.ValueOf(c).Elem()) {
			reason, ok := f.tag.Lookup("unique")
			if !ok || f.value.IsZero() {
				continue
			}
			if other, twice := used[f.value.String()]; twice {
				k.fail(join(path, f.name), "is the %s of %s too; %s", f.name, other, reason)
			}
			used[f.value.String()] = name
		}
	}
}

// http refuses to serve other machines without a credential of 128 bits (R-S4).
func (k *checker) http() {
	h := k.config.HTTP
	if _, given := k.d.at["channels.web"]; given && h.Listen == "" && k.config.Channels["web"] != nil {
		k.fail("channels.web", "needs http.listen")
	}
	if _, err := web.Origin(h.PublicURL); h.PublicURL != "" && err != nil {
		k.fail("http.publicUrl", "%v", err)
	}
	const remedy = "make one with: openssl rand -hex 16"
	host, _, _ := net.SplitHostPort(h.Listen)
	local := h.Listen == "" || host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case h.AdminToken != "" && len(h.AdminToken) < 22:
		k.fail("http.adminToken", "must have 22 characters or more; "+remedy)
	case local || web.StrongSecret(string(h.AdminToken)):
	case h.AdminToken == "":
		k.fail("http.adminToken", "is missing, and http.listen lets other machines in; "+remedy)
	default:
		k.fail("http.adminToken", "can be guessed, and http.listen lets other machines in; "+remedy)
	}
}

func (k *checker) limits() {
	kinds := slices.Sorted(maps.Keys(defaultLimits()))
	for whose, limit := range k.config.Limits {
		key := join("limits", whose)
		if !slices.Contains(kinds, whose) {
			k.fail(key, "there are no limits of this kind; allowed: %s", strings.Join(kinds, ", "))
		}
		for _, f := range fields(reflect.ValueOf(limit).Elem()) {
			key := join(key, f.name)
			n := f.value.Convert(reflect.TypeFor[float64]()).Float()
			of, restricted := f.tag.Lookup("of")
			_, given := k.d.at[key]
			switch {
			case given && n <= 0 && n != -1:
				k.fail(key, "must be above 0, or -1 for no limit")
			case given && restricted && !slices.Contains(strings.Fields(of), whose):
				k.fail(key, "%s: write %s", f.tag.Get("else"), elsewhere(f.name, strings.Fields(of)))
			}
		}
	}
}

// elsewhere lists the keys where a limit can stand.
func elsewhere(name string, of []string) string {
	var keys []string
	for _, whose := range of {
		keys = append(keys, join(join("limits", whose), name))
	}
	return strings.Join(keys, " or ")
}

// rules checks that the categories that rules are for exist.
func (k *checker) rules() {
	if len(k.config.Tools.Rules) == 0 {
		return
	}
	categories := k.d.drivers.Categories()
	for _, name := range slices.Sorted(maps.Keys(k.config.Tools.MCPServers)) {
		categories = append(categories, mcp.Category(name))
	}
	list := strings.Join(categories, ", ")
	for category := range k.config.Tools.Rules {
		if !slices.Contains(categories, category) {
			k.fail(join("tools.rules", category), "no tools are of this category; allowed: %s", list)
		}
	}
}

// mcpServers checks that models can tell servers apart.
func (k *checker) mcpServers() {
	used := map[string]string{} // category -> the server that has it
	for _, name := range slices.Sorted(maps.Keys(k.config.Tools.MCPServers)) {
		key := join("tools.mcpServers", name)
		category := mcp.Category(name)
		if other, twice := used[category]; twice {
			k.fail(key, "is %s for models, as %q is: rename one of them", category, other)
		}
		if strings.TrimSpace(name) == "" {
			k.fail(key, "needs a name")
		}
		used[category] = name
	}
}

var simple = lazyregexp.New(`^[A-Za-z0-9_-]+$`)
