package gotch

import (
	"fmt"
	"regexp"
	"strings"
)

// The generated files hold one function per operation, all of a few forms. They are changed by rule, and the number of
// functions that each rule met is checked, so that a file of another version is noticed.
const (
	wrappersC    = 2451 // C++ functions with an output buffer
	typesC       = 148  // element types that a C++ function is given
	wrappersGo   = 2447 // Go methods that call one of them
	fatalsInMust = 2485 // Must methods
	dimsC        = 24   // dimensions of indexing operations
	divisionsC   = 30   // divisions and remainders that integers come out of
)

var (
	cFunction = regexp.MustCompile(`(?m)^void (atg_\w+)\(tensor \*out__`)
	cOutput   = regexp.MustCompile(`out__\[(\d)\] =`)
	cDim      = regexp.MustCompile(`(torch::(?:index_\w+|scatter\w*|gather)\(\*self, ` +
		`|self->(?:index_\w+_|scatter\w*_)\()dim,`)
	cDivision = regexp.MustCompile(`(?m)^void atg_(?:floor_divide|fmod|remainder|divi?d?e?_\w*mode)\w*\(` +
		`tensor \*out__, (?:tensor out, )?\w+ (self\w*), \w+ other\b`)
	cType      = regexp.MustCompile(`at::ScalarType\((\w+)\)`)
	goFunction = regexp.MustCompile(`(?m)^func`)
	goCall     = regexp.MustCompile(`lib\.Atg\w+\((ptr|ctensorPtr0),[^\n]*\)\n`)
	goQuery    = regexp.MustCompile(`(?m)^\s*retVal = lib\.Atg\w+\([^\n]*\)\n`)
	goTensor   = regexp.MustCompile(`(\w+)\.ctensor`)
	goScalar   = regexp.MustCompile(`(\w+)\.cscalar`)
	goReturn   = regexp.MustCompile(`return (.*, )?err`)
	goName     = regexp.MustCompile(`err = fmt\.Errorf\("(\w+)\(\) failed: %w", err\)`)
	goSlice    = regexp.MustCompile(`for _, t := range (\w+) \{(\w+) = append\(\w+, t\.ctensor\)\}`)
	goNew      = regexp.MustCompile(`newTensor\(\*(ptr|ctensorPtr\d), "\w+"\)`)
	goPtrN     = regexp.MustCompile(`(?m)^\s*ctensorPtr(\d) := .*Sizeof.*$`)
)

// cChecks are conditions without which an operation of libtorch 1.13 ends the process.
var cChecks = map[string]string{
	"atg_batch_norm_update_stats":     `input->numel() > 0, "the batch is empty"`,
	"atg_batch_norm_update_stats_out": `input->numel() > 0, "the batch is empty"`,
	"atg_native_batch_norm":           `input->numel() > 0, "the batch is empty"`,
	"atg_native_batch_norm_out":       `input->numel() > 0, "the batch is empty"`,
	"atg_native_channel_shuffle":      `groups > 0, "there must be at least one group"`,
	"atg_lu_unpack":                   `LU_pivots->numel() > 0 || LU_data->numel() == 0, "there are no pivots"`,
	"atg_lu_unpack_out":               `LU_pivots->numel() > 0 || LU_data->numel() == 0, "there are no pivots"`,
}

// adaptGeneratedC makes every C++ wrapper report its error and its scope in the output buffer: after n outputs comes
// the scope of the calling thread; on failure the first slot is null and the second holds the message. The number of an
// element type is checked: libtorch indexes a table with it. The dimension of indexing operations is counted from the
// front: where a tensor is mapped and the index is not, vmap of libtorch 1.13 takes a negative one to be the mapped
// tensor's, and computes something else or crashes. Integers whose quotient the processor refuses are an error.
func adaptGeneratedC(dst string) error {
	return rewrite(dst, "libtch/torch_api_generated.cpp.h", func(s string) (string, error) {
		met, divisions, checks := 0, 0, 0
		blocks := strings.Split(s, "\n}\n")
		for i, block := range blocks {
			if !cFunction.MatchString(block) {
				continue
			}
			n := 0
			for _, m := range cOutput.FindAllStringSubmatch(block, -1) {
				if k := int(m[1][0] - '0'); k >= n {
					n = k + 1
				}
			}
			if n == 0 || strings.Count(block, "PROTECT(") != 1 {
				continue
			}
			check := ""
			if m := cDivision.FindStringSubmatch(block); m != nil {
				check = "\n    kelvin_divides(" + m[1] + ", other);"
				divisions++
			}
			if condition := cChecks[cFunction.FindStringSubmatch(block)[1]]; condition != "" {
				check = "\n    kelvin_require(" + condition + ");"
				checks++
			}
			blocks[i] = strings.Replace(block, "PROTECT(", fmt.Sprintf("KELVIN_OP(%d, %s", n, check), 1)
			met++
		}
		if met != wrappersC {
			return "", edit{file: "libtch/torch_api_generated.cpp.h", what: "errors in the output buffer",
				anchor: cFunction.String()}.changed(met, wrappersC)
		}
		if divisions != divisionsC || checks != len(cChecks) {
			return "", edit{file: "libtch/torch_api_generated.cpp.h", what: "what ends the process is checked",
				anchor: cDivision.String()}.changed(divisions+checks, divisionsC+len(cChecks))
		}
		s = strings.Join(blocks, "\n}\n")
		if n := len(cType.FindAllStringIndex(s, -1)); n != typesC {
			return "", edit{file: "libtch/torch_api_generated.cpp.h", what: "element types are checked",
				anchor: cType.String()}.changed(n, typesC)
		}
		if n := len(cDim.FindAllStringIndex(s, -1)); n != dimsC {
			return "", edit{file: "libtch/torch_api_generated.cpp.h", what: "dimensions counted from the end",
				anchor: cDim.String()}.changed(n, dimsC)
		}
		s = cDim.ReplaceAllString(s, "${1}at::maybe_wrap_dim(dim, self->dim()),")
		return cType.ReplaceAllString(s, "kelvin_type($1)"), nil
	})
}

// adaptGeneratedGo makes every Go method use an output buffer of its own instead of memory that is never freed, read
// the error from it, refuse tensors that were freed, and hold its arguments during the call.
func adaptGeneratedGo(dst string) error {
	return rewrite(dst, "ts/tensor-generated.go", func(s string) (string, error) {
		starts := goFunction.FindAllStringIndex(s, -1)
		var b strings.Builder
		b.WriteString(s[:starts[0][0]])
		met := 0
		for i, start := range starts {
			end := len(s)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			f, ok := adaptMethod(s[start[0]:end])
			if ok {
				met++
			}
			b.WriteString(f)
		}
		if met != wrappersGo {
			return "", edit{file: "ts/tensor-generated.go", what: "output buffers",
				anchor: goCall.String()}.changed(met, wrappersGo)
		}
		out := b.String()
		return strings.Replace(out, "import(\n  \"unsafe\"\n  \"fmt\"\n", "import(\n", 1), nil
	})
}

// adaptMethod rewrites one generated method; false when it has no output buffer.
func adaptMethod(f string) (string, bool) {
	call := goCall.FindStringIndex(f)
	name := goName.FindStringSubmatch(f)
	if call == nil || name == nil {
		return adaptQuery(f), false
	}
	failed := goReturn.FindString(f) // the statement that returns err and zero values
	outputs := strings.Count(f, "newTensor(*")
	if outputs == 0 {
		outputs = 1 // an in-place method
	}
	slots := outputs + 1
	tensors := unique(goTensor.FindAllStringSubmatch(f[call[0]:call[1]], -1))
	scalars := unique(goScalar.FindAllStringSubmatch(f[call[0]:call[1]], -1))

	// A use of each operand begins before the call and ends after it; where one was freed, those before it end.
	var guard, end strings.Builder
	var begun []string
	hold := func(begin, ends, err string) {
		fmt.Fprintf(&guard, "  if !%s { %serr = %s; %s }\n", begin, strings.Join(begun, ""), err, failed)
		begun = append(begun, ends+"; ")
		fmt.Fprintf(&end, "  %s\n", ends)
	}
	for _, t := range tensors {
		hold(t+".begin()", t+".end()", fmt.Sprintf("deadError(%q, %s)", name[1], strings.Join(tensors, ", ")))
	}
	for _, sc := range scalars {
		hold(sc+".begin()", sc+".end()", fmt.Sprintf("deadScalarError(%q)", name[1]))
	}
	slices := ""
	for _, m := range goSlice.FindAllStringSubmatch(f, -1) {
		slices += ", " + m[1] + "..."
		hold("beginAll("+m[1]+")", "endAll("+m[1]+")", fmt.Sprintf("deadError(%q, %s...)", name[1], m[1]))
	}
	// The handles of a list are collected before the list is checked, so an element may be nil.
	f = goSlice.ReplaceAllString(f, "for _, t := range $1 {$2 = append($2, t.handle())}")
	call = goCall.FindStringIndex(f)
	shown := strings.Join(tensors, ", ")
	if shown == "" && slices != "" {
		shown = strings.TrimPrefix(slices, ", ")
		if strings.Contains(shown, ",") {
			shown = shown[:strings.Index(shown, ",")]
		}
	}
	if shown != "" {
		shown = ", " + shown
	}

	body := f[call[0]:call[1]]
	f = f[:call[0]] + "\n" + guard.String() + "  " + body + end.String() + f[call[1]:]
	f = strings.Replace(f, "if err = TorchErr(); err != nil {\n    "+name[0],
		fmt.Sprintf("if slot[0] == nil {\n    err = opError(%q, slot[1]%s)", name[1], shown), 1)
	f = strings.Replace(f, "ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))",
		fmt.Sprintf("var slot [%d]lib.Ctensor\n  ptr := &slot[0]", slots), 1)
	f = strings.Replace(f, "ctensorPtr0 := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))",
		fmt.Sprintf("var slot [%d]lib.Ctensor\n  ctensorPtr0 := &slot[0]", slots), 1)
	f = goPtrN.ReplaceAllString(f, "  ctensorPtr$1 := &slot[$1]")
	f = goNew.ReplaceAllString(f, fmt.Sprintf("adoptIn(*$1, slot[%d])", outputs))
	f = strings.Replace(f, "ts.ctensor = *ptr", "ts.replace(*ptr)", 1)
	return f, true
}

// adaptQuery rewrites a generated method that returns a number or a flag: it has no output buffer, and its error is
// left on the thread.
func adaptQuery(f string) string {
	call := goQuery.FindStringIndex(f)
	name := goName.FindStringSubmatch(f)
	if call == nil || name == nil {
		return f
	}
	guard := "  defer lockThread()()\n"
	tensors := unique(goTensor.FindAllStringSubmatch(f[call[0]:call[1]], -1))
	for _, t := range tensors {
		guard += fmt.Sprintf("  if !%s.begin() { return retVal, deadError(%q, %s) }\n  defer %s.end()\n", t, name[1],
			strings.Join(tensors, ", "), t)
	}
	operands := strings.Join(append([]string{fmt.Sprintf("%q", name[1])}, tensors...), ", ")
	f = f[:call[0]] + guard + strings.Replace(f[call[0]:], "TorchErr()", "threadError("+operands+")", 1)
	return strings.Replace(f, "    "+name[0]+"\n", "", 1)
}

func unique(matches [][]string) []string {
	var out []string
	seen := map[string]bool{}
	for _, m := range matches {
		if !seen[m[1]] {
			seen[m[1]] = true
			out = append(out, m[1])
		}
	}
	return out
}

// fatalFiles are the files whose failures end the process in the published module.
var fatalFiles = map[string]int{
	"ts/must-tensor-generated.go": fatalsInMust,
	"ts/data.go":                  3, "ts/index.go": 2, "ts/iter.go": 3, "ts/jit.go": 19, "ts/optimizer.go": 1,
	"ts/patch.go": 14, "ts/print.go": 2, "ts/scalar.go": 1, "ts/tensor.go": 34,
	"nn/batch-norm.go": 4, "nn/conv-transpose.go": 3, "nn/init.go": 5, "nn/jit.go": 1, "nn/optimizer.go": 11,
	"nn/scheduler.go": 23, "nn/varstore.go": 26,
}

var (
	fatal     = regexp.MustCompile(`log\.Fatal(f?)\(`)
	logImport = regexp.MustCompile(`(?m)^\s*"log"\n`)
	logUse    = regexp.MustCompile(`\blog\.`)
)

// adaptFatal turns the calls that end the process into panics with a typed error, which
// Kelvin's public functions return.
func adaptFatal(dst string) error {
	for file, want := range fatalFiles {
		err := rewrite(dst, file, func(s string) (string, error) {
			if n := len(fatal.FindAllString(s, -1)); n != want {
				return "", edit{file: file, what: "failures panic", anchor: fatal.String()}.changed(n, want)
			}
			call := "KelvinFatal$1("
			if !strings.HasPrefix(file, "ts/") {
				call = "ts." + call
			}
			s = fatal.ReplaceAllString(s, call)
			if !logUse.MatchString(s) {
				instead := ""
				if strings.HasPrefix(call, "ts.") && !strings.Contains(s, `"github.com/sugarme/gotch/ts"`) {
					instead = "\t\"github.com/sugarme/gotch/ts\"\n"
				}
				s = logImport.ReplaceAllString(s, instead)
			}
			return s, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
