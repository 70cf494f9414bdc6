package early

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// The file descriptors of a launcher besides the standard ones. A reaper has the first two, and
// maybe further ones.
const (
	GateFile     = 3 // where a byte can be read once the process may begin
	LifelineFile = 4 // read to its end when the program must end
	PlanFile     = 5 // a Plan; the launcher writes a Result over it
	RulesetFile  = 6 // what Landlock is to allow
)

// A Plan says what a launcher runs.
type Plan struct {
	Path    string // of the program
	Args    []string
	Dir     string // where it starts
	Env     []string
	Temp    string   // the folder to remove afterwards
	Folders []Folder // where programs may change modes, owners and times, which Landlock does not rule
	Filter  []Instruction
}

// A Folder is a path, and whether what is below it may be changed. Of all that a file is in, the one
// with the longest path counts.
type Folder struct {
	Path     string
	Writable bool
}

// An Instruction is one of a seccomp filter, as the kernel has it.
type Instruction struct {
	Code     uint16
	IfTrue   uint8
	IfFalse  uint8
	Constant uint32
}

const instructionSize = 8

// errPlan is the error of a Plan that cannot be read.
var errPlan = errors.New("the plan of a launcher is damaged")

// Encode returns p as text that Decode reads. No string in it has a NUL character.
func (p Plan) Encode() []byte {
	var b strings.Builder
	list := func(values []string) {
		b.WriteString(strconv.Itoa(len(values)))
		b.WriteByte(0)
		for _, v := range values {
			b.WriteString(v)
			b.WriteByte(0)
		}
	}
	list([]string{p.Path, p.Dir, p.Temp})
	list(p.Args)
	list(p.Env)
	var folders []string
	for _, f := range p.Folders {
		folders = append(folders, strconv.FormatBool(f.Writable)+f.Path)
	}
	list(folders)
	return append([]byte(b.String()), EncodeFilter(p.Filter)...)
}

// EncodeFilter returns filter as the kernel has it.
func EncodeFilter(filter []Instruction) (data []byte) {
	for _, i := range filter {
		data = binary.LittleEndian.AppendUint16(data, i.Code)
		data = append(data, i.IfTrue, i.IfFalse)
		data = binary.LittleEndian.AppendUint32(data, i.Constant)
	}
	return data
}

// Decode reads what Encode returned.
func Decode(data []byte) (p Plan, err error) {
	text := string(data)
	next := func() string {
		value, rest, found := strings.Cut(text, "\x00")
		if !found {
			err = errPlan
		}
		text = rest
		return value
	}
	list := func() (values []string) {
		n, _ := strconv.Atoi(next())
		for ; n > 0 && err == nil; n-- {
			values = append(values, next())
		}
		return values
	}
	paths := list()
	if len(paths) != 3 {
		return p, errPlan
	}
	p.Path = paths[0]
	p.Dir = paths[1]
	p.Temp = paths[2]
	p.Args = list()
	p.Env = list()
	for _, f := range list() {
		path, writable := strings.CutPrefix(f, "true")
		if !writable {
			path = strings.TrimPrefix(f, "false")
		}
		p.Folders = append(p.Folders, Folder{path, writable})
	}
	for rest := []byte(text); len(rest) >= instructionSize; rest = rest[instructionSize:] {
		p.Filter = append(p.Filter, Instruction{
			Code:     binary.LittleEndian.Uint16(rest),
			IfTrue:   rest[2],
			IfFalse:  rest[3],
			Constant: binary.LittleEndian.Uint32(rest[4:]),
		})
	}
	return p, err
}

// writable reports whether what is at path may be changed.
func (p Plan) writable(path string) bool {
	best := Folder{}
	for _, f := range p.Folders {
		inside := path == f.Path || strings.HasPrefix(path, strings.TrimSuffix(f.Path, "/")+"/")
		if inside && len(f.Path) >= len(best.Path) {
			best = f
		}
	}
	return best.Writable && path != best.Path
}
