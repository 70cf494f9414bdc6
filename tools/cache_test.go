package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/workspace"
)

const fiveMinutes = 5 * time.Minute

// how long an answer is given again.
func TestCacheLasts(t *testing.T) {

	for _, c := range []struct {
		name  string
		ttl   time.Duration // -1: no cache
		hints Hints
		lasts time.Duration
	}{
		{"A-009, A-075 usual", fiveMinutes, Hints{ReadOnly: true, Cacheable: true}, 300 * time.Second},
		{"A-076 longer", 10 * time.Minute, Hints{ReadOnly: true, Cacheable: true}, 10 * time.Minute},
		{"A-076 shorter", time.Minute, Hints{ReadOnly: true, Cacheable: true}, time.Minute},
		{"A-077 off", 0, Hints{ReadOnly: true, Cacheable: true}, 0},
		{"no cache", -1, Hints{ReadOnly: true, Cacheable: true}, 0},
		{"live", fiveMinutes, Hints{ReadOnly: true}, 0},
		{"takes effect", fiveMinutes, Hints{Cacheable: true}, 0},
	} {
		for _, wait := range []time.Duration{c.lasts - time.Second, c.lasts + time.Second} {
			if wait < 0 {
				continue
			}
			timetest.Test(t, func(t *testing.T) {
				var ran atomic.Int64
				u := counting("u", c.hints, &ran)
				slow := u.Run
				u.Run = func(ctx context.Context, call Call) (Result, error) {
					time.Sleep(time.Millisecond)
					return slow(ctx, call)
				}
				cfg := StandardConfig{Cache: NewCache(c.ttl)}
				if c.ttl < 0 {
					cfg.Cache = nil
				}
				k := turnOf(t, cfg, chat.User, u)
				first := k.Call(t.Context(), callTo("u", ""))
				timetest.Sleep(wait)
				if c.ttl >= 0 { // without a cache a turn has none of its own either
					k = turnOf(t, cfg, chat.User, u)
				}
				again := k.Call(t.Context(), callTo("u", ""))
				hit := wait < c.lasts
				if first.Cached || again.Cached != hit || (ran.Load() == 1) != hit {
					t.Errorf("%s after %v: ran %d times, %+v", c.name, wait, ran.Load(), again)
				}
				if hit && (again.Took != 0 || !again.Time.Equal(time.Now()) || again.Text != first.Text) {
					t.Errorf("%s: a hit is %+v", c.name, again)
				}
			})
		}
	}
}

// which calls are the same.
func TestCacheKey(t *testing.T) {
	var homes [2]*workspace.Workspace
	for i := range homes {
		w, err := workspace.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		homes[i] = w
	}
	with := func(change func(*Call)) Call {
		c := callTo("u", `{"a":1,"b":"2"}`)
		c.From, c.Workspace = chat.Sender{ID: "1", Role: chat.User}, homes[0]
		if change != nil {
			change(&c)
		}
		return c
	}
	args := func(s string) Call { return with(func(c *Call) { c.Args = s }) }
	for _, c := range []struct {
		name string
		call Call
		same bool
	}{
		{"itself", with(nil), true},
		{"A-079 sorted", args(`{"b":"2","a":1}`), true},
		{"A-079 cast", args(`{"a":"1","b":2}`), true},
		{"A-079 number", args(`{"a":1.0,"b":"2"}`), true},
		{"E-002 alias", args(`{"first":1,"b":"2"}`), true},
		{"A-026, E-037 dropped", args(`{"a":1,"b":"2","_x":3}`), true},
		{"D-020 its name", with(func(c *Call) { c.Name = "functions.U" }), true},
		{"another call", with(func(c *Call) { c.ID, c.Turn, c.Round, c.Message = "c9", "t9", 9, "m9" }), true},
		{"a new name", with(func(c *Call) { c.From.Name = "Ann" }), true},
		{"other arguments", args(`{"a":1,"b":"3"}`), false},
		{"one more", args(`{"a":1,"b":"2","c":null}`), false},
		{"session", with(func(c *Call) { c.Session = "telegram:43" }), false},
		{"person", with(func(c *Call) { c.From.ID = "2" }), false},
		{"role", with(func(c *Call) { c.From.Role = chat.Owner }), false},
		{"A-013 project", with(func(c *Call) { c.Workspace = homes[1] }), false},
		{"no project", with(func(c *Call) { c.Workspace = nil }), false},
		{"tool", with(func(c *Call) { c.Name = "v" }), false},
		{"A-079 canonical name", with(func(c *Call) { c.Name = "old_u" }), true},
	} {
		var n atomic.Int64
		hints := Hints{ReadOnly: true, Cacheable: true}
		u, v, old := counting("u", hints, &n), counting("v", hints, &n), counting("old_u", hints, &n)
		u.Schema = []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}`)
		u.Aliases = map[string]string{"first": "a"}
		old.AliasOf = "u"
		cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
		turnOf(t, cfg, chat.User, u, v, old).Call(t.Context(), with(nil))
		r := turnOf(t, cfg, chat.User, u, v, old).Call(t.Context(), c.call)
		if r.Cached != c.same || r.Failed || (n.Load() == 1) != c.same {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// the order and the spelling of arguments are nothing, their values all.
func TestCacheKeyOfAny(t *testing.T) {
	schema := `{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
		"l":{"type":"array","items":{"type":"integer"}},"o":{"type":"object","properties":{"n":{"type":"integer"}}}}}`
	value := map[string]*rapid.Generator[any]{
		"n": rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		"x": rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f + 0 }), // not -0
		"b": rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		"s": rapid.Map(rapid.StringMatching(`[a-z"\\<é ]*x`), func(s string) any { return s }),
		"l": rapid.Map(rapid.SliceOfN(rapid.Int64(), 1, 5), func(l []int64) any { return l }),
		"o": rapid.Map(rapid.Int64(), func(i int64) any { return map[string]any{"n": i, "k": "v"} }),
	}
	rapid.Check(t, func(rt *rapid.T) {
		var n atomic.Int64
		u := counting("u", Hints{ReadOnly: true, Cacheable: true}, &n)
		u.Schema = []byte(schema)
		cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
		call := func(args string) Result { return turnOf(t, cfg, chat.User, u).Call(t.Context(), callTo("u", args)) }
		in := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n", "x", "b", "s", "l", "o"}), 1, 6, rapid.ID).Draw(rt, "names") {
			in[name] = value[name].Draw(rt, name)
		}
		plain, _ := json.Marshal(in)
		first := call(string(plain))
		var pairs []string
		for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(in))).Draw(rt, "order") {
			js, _ := json.Marshal(in[name])
			if _, isText := in[name].(string); !isText && rapid.Bool().Draw(rt, "as text") {
				js, _ = json.Marshal(string(js))
			}
			pairs = append(pairs, fmt.Sprintf("\t%q :\n%s", name, js))
		}
		if again := call("{" + strings.Join(pairs, ",") + "}"); first.Failed || !again.Cached {
			rt.Fatalf("%s and %s: %+v", plain, pairs, again)
		}
		in["s"] = "never drawn: y"
		other, _ := json.Marshal(in)
		if r := call(string(other)); r.Cached {
			rt.Fatalf("%s and %s are not the same", plain, other)
		}
	})
}

// the 512 used last are kept.
func TestCacheSize(t *testing.T) {
	var n atomic.Int64
	u := counting("u", Hints{ReadOnly: true, Cacheable: true}, &n)
	cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
	call := func(i int) bool {
		return turnOf(t, cfg, chat.User, u).Call(t.Context(), callTo("u", fmt.Sprintf(`{"i":%d}`, i))).Cached
	}
	for i := range 512 {
		call(i)
	}
	first := call(0)
	call(512) // in place of 1
	if again, one, two := call(0), call(1), call(3); !first || !again || one || !two || len(cfg.Cache.entries) != 512 {
		t.Errorf("0: %v %v, 1: %v, 3: %v; %d are kept", first, again, one, two, len(cfg.Cache.entries))
	}
}

// Calls that are the same and run at once are kept once.
func TestCacheOfTwo(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		u := counting("u", Hints{ReadOnly: true, Cacheable: true}, &n)
		run := u.Run
		u.Run = func(ctx context.Context, c Call) (Result, error) { time.Sleep(time.Second); return run(ctx, c) }
		cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
		turnOf(t, cfg, chat.User, u).Together(t.Context(), []Call{callTo("u", ""), callTo("u", "")})
		if n.Load() != 2 || len(cfg.Cache.entries) != 1 {
			t.Errorf("ran %d times, kept %d", n.Load(), len(cfg.Cache.entries))
		}
	})
}

// A job on the clock sees what has changed since anybody looked last.
func TestCacheNotForJobs(t *testing.T) {
	var ran atomic.Int64
	cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
	for _, origin := range []chat.Origin{chat.FromPerson, chat.FromSchedule, chat.FromSchedule} {
		call := callTo("u", "")
		call.Origin = origin
		k := turnOf(t, cfg, chat.User, counting("u", Hints{ReadOnly: true, Cacheable: true}, &ran))
		if r := k.Call(t.Context(), call); r.Cached {
			t.Errorf("%q is answered from memory: %+v", origin, r)
		}
	}
	if n := ran.Load(); n != 3 {
		t.Errorf("ran %d times", n)
	}
}

// What was looked up, and the statistics, survive a restart; what is too old,
// of another variant or of a deleted session does not (A-075, P28).
func TestCacheSurvives(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		defer s.Close()
		bucket := s.Bucket("cache")
		var n atomic.Int64
		u := counting("u", Hints{ReadOnly: true, Cacheable: true, Untrusted: true}, &n)
		// session opens the cache, does use, and closes it again as a shutdown does.
		session := func(variant string, use func(c *Cache, call func(session, args string) Result)) {
			t.Helper()
			cache, err := OpenCache(t.Context(), bucket, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			cache.Configure(fiveMinutes, variant)
			ctx, stop := context.WithCancel(t.Context())
			var writer sync.WaitGroup
			writer.Go(func() { cache.Run(ctx) })
			use(cache, func(session, args string) Result {
				c := callTo("u", args)
				c.Session = chat.SessionID(session)
				return turnOf(t, StandardConfig{Cache: cache}, chat.User, u).Call(t.Context(), c)
			})
			stop()
			writer.Wait()
		}
		kept := func() (keys []string) {
			for key, err := range bucket.Keys(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			return keys
		}
		session("a", func(_ *Cache, call func(session, args string) Result) {
			call("telegram:1", `{"i":1}`)
			call("telegram:11", `{"i":1}`)
			timetest.Sleep(time.Minute)
			if len(kept()) != 2 { // without a shutdown, too
				t.Errorf("kept %q", kept())
			}
		})
		session("a", func(c *Cache, call func(session, args string) Result) {
			if r := call("telegram:1", `{"i":1}`); r.Text != "run 1" || !r.Cached || !r.Tainted || r.Took != 0 {
				t.Errorf("after a restart: %+v", r)
			}
			c.Forget("telegram:1")
			if r := call("telegram:1", `{"i":2}`); r.Text != "run 3" {
				t.Errorf("another call: %+v", r)
			}
		})
		session("a", func(_ *Cache, call func(session, args string) Result) {
			if r := call("telegram:1", `{"i":1}`); r.Cached {
				t.Errorf("of a session that was deleted: %+v", r)
			}
			if r := call("telegram:11", `{"i":1}`); !r.Cached {
				t.Errorf("of another session: %+v", r)
			}
		})
		session("b", func(_ *Cache, call func(session, args string) Result) {
			if r := call("telegram:11", `{"i":1}`); r.Cached {
				t.Errorf("after a change of the settings: %+v", r)
			}
			timetest.Sleep(fiveMinutes)
			if r := call("telegram:11", `{"i":1}`); r.Cached {
				t.Errorf("after its time: %+v", r)
			}
		})
		if _, err := bucket.Put(t.Context(), "telegram:1 broken", []byte("{"), store.Any); err != nil {
			t.Fatal(err)
		}
		session("b", func(_ *Cache, _ func(session, args string) Result) { timetest.Sleep(3 * fiveMinutes) })
		if left := kept(); len(left) > 0 {
			t.Errorf("never deleted: %q", left)
		}
	})
}

// C-043: the statistics survive a restart, also if the disk was full for a while.
func TestStatsSurvive(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		defer s.Close()
		full := &fullBucket{Bucket: s.Bucket("stats")}
		full.is.Store(true)
		stats, err := OpenStats(t.Context(), full, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var writer sync.WaitGroup
		writer.Go(func() { stats.Run(ctx) })
		stats.RolledBack("web_search")
		timetest.Sleep(time.Minute)
		full.is.Store(false)
		stats.RolledBack("web_search")
		timetest.Sleep(time.Minute)
		stop()
		writer.Wait()
		again, err := OpenStats(t.Context(), full, slog.New(slog.DiscardHandler))
		if n, _ := again.Of("web_search"); err != nil || n.Rollbacks != 2 {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// A fullBucket is on a disk that may be full.
type fullBucket struct {
	store.Bucket
	is atomic.Bool
}

func (b *fullBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if b.is.Load() {
		return 0, store.ErrFull
	}
	return b.Bucket.Put(ctx, key, val, rev)
}
