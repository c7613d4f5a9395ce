package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// row is a function, or a method whose first argument is its receiver.
type row struct {
	key string
	f   any
}

// A child process calls the entries of a table from this one on: "rows 12".
const first = "KELVIN_MISUSE_FIRST"

// aMinute without a call that ends is a hang.
func aMinute(string) time.Duration { return time.Minute }

func TestMain(m *testing.M) {
	table, limits, _ := strings.Cut(os.Getenv(first), " ")
	from, to := 0, 0
	_, _ = fmt.Sscan(limits, &from, &to)
	switch table {
	case "":
		os.Exit(m.Run())
	case "operations":
		callOperations(from, to)
	default:
		callRows(from, to)
	}
	fmt.Println("done")
}

// child is what a process did that called the entries of a table.
type child struct {
	at          int    // the entry that it came to
	doing       string // the call that it made last
	calls       int
	bad         []string
	done, hangs bool
	err         error
	stderr      string
}

// start runs a process that calls the entries of a table from one number to another. One that says nothing for longer
// than is right for its last call is killed.
func start(t *testing.T, dir, table string, from, to int, silence func(call string) time.Duration) child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", first, table, from, to), "OMP_NUM_THREADS=1",
		"OPENBLAS_NUM_THREADS=1")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var hangs atomic.Bool
	watch := time.AfterFunc(silence(""), func() { hangs.Store(true); _ = cmd.Process.Kill() })
	c := child{at: from}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		watch.Reset(silence(rest))
		switch what {
		case "row":
			c.at, _ = strconv.Atoi(rest)
		case "call":
			c.doing = rest
			c.calls++
		case "bad":
			c.bad = append(c.bad, rest)
		case "done":
			c.done = true
		}
	}
	c.err = cmd.Wait()
	watch.Stop()
	c.hangs = hangs.Load()
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, "Resize.cpp:") && !strings.Contains(line, "InitGoogleLogging") && len(c.stderr) < 2000 {
			c.stderr += line // libtorch's warnings are left out
		}
	}
	return c
}

// supervise calls the n entries of a table in child processes. A child that ends is an error unless that is known of
// the entry, and the next one goes on with the entry after. It returns how many calls there were.
func supervise(t *testing.T, table string, n int, name func(int) string, known map[string]string) (calls int) {
	dir := t.TempDir()
	for next := 0; next < n; {
		c := start(t, dir, table, next, n, aMinute)
		calls += c.calls
		for _, bad := range c.bad {
			if key, _, _ := strings.Cut(bad, ": "); known[key] == "" {
				t.Error(bad)
			}
		}
		if c.done {
			break
		}
		if known[name(c.at)] == "" {
			t.Errorf("%s: the process ended (%v, hangs: %t) in %s: %s", name(c.at), c.err, c.hangs, c.doing, c.stderr)
		}
		next = c.at + 1
	}
	return calls
}

// Every public function and method has a row, so that a new one is called as well.
func TestEveryEntryPointHasARow(t *testing.T) {
	entries, err := list("../..")
	require.NoError(t, err)
	have := map[string]bool{}
	for _, r := range rows {
		have[r.key] = true
	}
	for _, e := range entries {
		if without[e.key()] == "" && !have[e.key()] {
			t.Errorf("%s has no row: go run ./internal/misuse", e.key())
		}
		delete(have, e.key())
	}
	require.Empty(t, have, "rows of what is gone")
}

// callRows calls the rows from one number to another.
func callRows(from, to int) {
	limitMemory(24 << 30)
	_ = torch.SetThreads(1)
	for i := from; i < to; i++ {
		fmt.Println("row", i)
		call(rows[i].key, reflect.ValueOf(rows[i].f), strings.Count(rows[i].key, ".") > 1, true)
	}
}

// call calls f with each of its arguments hostile in turn. The first one may be a receiver, which is never nil. The
// methods of what a function returns are called too.
func call(key string, f reflect.Value, receiver, results bool) {
	f = inModel(f)
	t := f.Type()
	arguments := func() (in []reflect.Value) {
		for i := range t.NumIn() {
			in = append(in, made(t.In(i), 0))
		}
		return in
	}
	if receiver && t.In(0).Kind() == reflect.Pointer && good[t.In(0)] == nil {
		return // an instance comes from a function, whose results are called as well
	}
	returned := try(key, "right arguments", f, arguments())
	for i := range t.NumIn() {
		if receiver && i == 0 && t.In(0).Kind() != reflect.Struct {
			continue
		}
		for k := range hostile(t.In(i), 0) {
			in := arguments()
			in[i] = hostile(t.In(i), 0)[k]
			if counts[key] && in[i].CanInt() && in[i].Int() > 1e4 {
				continue
			}
			try(key, fmt.Sprintf("argument %d hostile %d", i, k), f, in)
		}
	}
	if receiver || !results {
		return
	}
	for _, r := range returned {
		if (r.Kind() == reflect.Interface || r.Kind() == reflect.Pointer) && r.IsNil() {
			continue
		}
		if r.Kind() == reflect.Interface {
			r = r.Elem()
		}
		if !strings.HasPrefix(owner(r.Type()), module) {
			continue
		}
		for i := range r.NumMethod() {
			call(key+"()."+r.Type().Method(i).Name, r.Method(i), false, false)
		}
	}
}

// inModel makes a function that takes the context of a model one that runs a model and calls it there.
func inModel(f reflect.Value) reflect.Value {
	t, at := f.Type(), -1
	var others []reflect.Type
	for i := range t.NumIn() {
		if t.In(i) == of[*ppl.Ctx]() {
			at = i
		} else {
			others = append(others, t.In(i))
		}
	}
	if at < 1 { // none, or the receiver
		return f
	}
	return reflect.MakeFunc(reflect.FuncOf(others, []reflect.Type{of[error]()}, t.IsVariadic()),
		func(in []reflect.Value) []reflect.Value {
			_, err := ppl.Compile(func(c *ppl.Ctx) {
				with := slices.Insert(slices.Clone(in), at, reflect.ValueOf(c))
				if t.IsVariadic() {
					f.CallSlice(with)
				} else {
					f.Call(with)
				}
			}, nil)
			out := reflect.New(of[error]()).Elem()
			if err != nil {
				out.Set(reflect.ValueOf(err))
			}
			return []reflect.Value{out}
		})
}

// owner is the package that a type, or what it points to, belongs to.
func owner(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// try makes one call and tells of a panic that should be an error.
func try(key, what string, f reflect.Value, in []reflect.Value) (out []reflect.Value) {
	fmt.Println("call", key, what)
	t := f.Type()
	returnsError := t.NumOut() > 0 && t.Out(t.NumOut()-1) == of[error]()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err, _ := v.(error)
		var typed torch.Recoverable
		var tensor *ts.Error
		switch {
		case errors.Is(err, errThrown):
			return // a panic of the caller's own function goes through, or comes back as an error
		case !returnsError && (errors.As(err, &typed) || errors.As(err, &tensor)):
			return
		}
		text := fmt.Sprint(v)
		if len(text) > 200 {
			text = text[:200]
		}
		fmt.Printf("bad %s: %s, %s: panic %T: %q%s\n", key, what, shown(in), v, text, where())
	}()
	if t.IsVariadic() {
		return f.CallSlice(in)
	}
	return f.Call(in)
}

// shown are the arguments as a reader recognises them.
func shown(in []reflect.Value) string {
	text := []string{}
	for _, v := range in {
		s := fmt.Sprintf("%v", v.Type())
		switch v.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64, reflect.String, reflect.Uint64:
			s = fmt.Sprintf("%v", v)
		case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Slice, reflect.Map:
			if v.IsNil() {
				s += "(nil)"
			}
		}
		text = append(text, s)
	}
	return "(" + strings.Join(text, ", ") + ")"
}

// where are Kelvin's lines of a stack, the innermost first.
func where() (lines string) {
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		if i := strings.Index(line, "/"); i >= 0 && strings.HasPrefix(line, "\t") && !strings.Contains(line, "/misuse/") &&
			!strings.Contains(line, "/src/") {
			line, _, _ = strings.Cut(line[i:], " +")
			lines += " " + line
		}
	}
	return lines
}
