package cc

import (
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Options say how a plan is compiled. The zero value is the default.
type Options struct {
	CacheDir string        // default is kelvin/native in the user's cache folder; NoCache for none
	Timeout  time.Duration // of the compiler; default 20 s
}

// Info tells how a program came about.
type Info struct {
	Compiler Compiler
	Seconds  float64 // in all, without making the plan
	Cached   bool    // the object was in the cache
	Linked   bool    // the functions were linked into this binary
	Lines    int     // of C
	Cache    string  // why the object is not in the cache, "" where it is
}

// Compile makes a program of a plan that has passed its checks.
func Compile(p *ir.Plan, o Options) (*Program, Info, error) {
	began := time.Now()
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	var info Info
	text, err := Emit(p)
	if err != nil {
		return nil, info, err
	}
	info.Lines = strings.Count(text, "\n")
	if program, ok := findLinked(text); ok {
		info.Linked = true
		return program, info, nil
	}
	if info.Compiler, err = Find(); err != nil {
		return nil, info, err
	}
	program, err := build(text, o, &info)
	info.Seconds = time.Since(began).Seconds()
	return program, info, err
}
