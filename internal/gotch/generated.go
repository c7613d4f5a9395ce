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
	resultsC     = 2225 // results that are moved to their place
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

// cChecks are the checks of operations that end the process, or do not end, where arguments do not fit: which functions
// they begin, and how many of those there are.
var cChecks = []struct {
	functions *regexp.Regexp
	check     string
	count     int
}{
	{functions("(native_batch_norm|batch_norm_update_stats)(_out)?"),
		`kelvin_require(input->numel() > 0, "the batch is empty")`, 4},
	{functions("native_channel_shuffle"),
		`kelvin_require(self->dim() > 2 && self->numel() > 0 && groups > 0 && self->size(1) % groups == 0, ` +
			`"the channels, of dimension 1, must be one or more groups of one size")`, 1},
	{functions("lu_unpack(_out)?"),
		`kelvin_require(LU_pivots->numel() > 0 || LU_data->numel() == 0, "there are no pivots")`, 2},
	{functions("(linalg_)?matrix_power(_out)?"),
		`kelvin_require(n > std::numeric_limits<int64_t>::min(), "the power is out of range")`, 4},
	{functions("matrix_exp_backward"),
		`kelvin_require(self->dim() > 1 && self->sizes() == grad->sizes(), "the gradient has another shape")`, 1},
	{functions("random_from(_|_out)?"),
		`kelvin_require(from < std::numeric_limits<int64_t>::max(), "from must be less than the largest integer")`, 3},
	{functions("lcm(_|_out)?"), `kelvin_multiple(self, other)`, 3},
	{functions("embedding(_dense|_sparse)?_backward(_out)?"), `kelvin_indices(indices, num_weights)`, 4},
	{functions("embedding_bag(_padding_idx)?"),
		`kelvin_bags(weight, indices, offsets, include_last_offset, mode)`, 2},
	{functions("fractional_max_pool2d_backward(_grad_input)?"),
		`kelvin_pooled(self, grad_output, indices, output_size_data, output_size_len, 2)`, 2},
	{functions("fractional_max_pool3d_backward(_grad_input)?"),
		`kelvin_pooled(self, grad_output, indices, output_size_data, output_size_len, 3)`, 2},
	{functions("max_unpool2d(_out)?"),
		`kelvin_require(output_size_len == 2, "there must be two output sizes")`, 2},
	{functions("max_unpool3d(_out)?"), `kelvin_require(output_size_len == 3 && stride_len == 3 && padding_len == 3, ` +
		`"there must be three output sizes, strides and paddings")`, 2},
	{functions("slow_conv3d(_out)?"), `kelvin_require(kernel_size_len == 3 && stride_len == 3 && padding_len == 3, ` +
		`"there must be three kernel sizes, strides and paddings")`, 2},
	{functions("reflection_pad1d(_out)?"), `kelvin_padding(self, nullptr, padding_data, padding_len, 1)`, 2},
	{functions("reflection_pad2d(_out)?"), `kelvin_padding(self, nullptr, padding_data, padding_len, 2)`, 2},
	{functions("reflection_pad1d_backward(_grad_input)?"),
		`kelvin_padding(self, grad_output, padding_data, padding_len, 1)`, 2},
	{functions("reflection_pad2d_backward(_grad_input)?"),
		`kelvin_padding(self, grad_output, padding_data, padding_len, 2)`, 2},
	{functions("unfold_backward(_out)?"),
		`kelvin_unfolded(grad_in, input_sizes_data, input_sizes_len, dim, size, step)`, 2},
	{functions("quantized_lstm_cell"), `kelvin_require(hx_len == 2, "there must be two tensors of state")`, 1},
	{functions("choose_qparams_optimized"), `kelvin_require(0 < numel && numel <= input->numel() && ` +
		`input->is_contiguous() && n_bins > 0, "numbers, or bins, are missing")`, 1},
	{functions("_?linalg_svd(_u)?"), `kelvin_finite(A)`, 4},
	{functions("svd(_u)?"), `kelvin_finite(self)`, 2},
	{functions(`(linalg_)?pinv\w*`), `kelvin_finite(self)`, 9},
	{functions("linalg_lstsq(_out)?"), `kelvin_finite(self)`, 2},
}

// cResult is the one result of an operation.
const cResult = "new torch::Tensor(outputs__);"

// functions are those of some operations.
func functions(names string) *regexp.Regexp { return regexp.MustCompile("^atg_(?:" + names + ")$") }

// adaptGeneratedC makes every C++ wrapper report its error and its scope in the output buffer: after n outputs comes
// the scope of the calling thread; on failure the first slot is null and the second holds the message. The number of an
// element type is checked: libtorch indexes a table with it. The dimension of indexing operations is counted from the
// front: where a tensor is mapped and the index is not, vmap of libtorch 1.13 takes a negative one to be the mapped
// tensor's, and computes something else or crashes. Integers whose quotient the processor refuses are an error.
func adaptGeneratedC(dst string) error {
	const file = "libtch/" + generatedC
	return rewrite(dst, file, func(s string) (string, error) {
		wrappers, divisions := 0, 0
		checks := make([]int, len(cChecks))
		blocks := strings.Split(s, "\n}\n")
		for i, block := range blocks {
			if !cFunction.MatchString(block) {
				continue
			}
			n := 0
			for _, m := range cOutput.FindAllStringSubmatch(block, -1) {
				n = max(n, int(m[1][0]-'0')+1)
			}
			if n == 0 || strings.Count(block, "PROTECT(") != 1 {
				continue
			}
			check := ""
			if m := cDivision.FindStringSubmatch(block); m != nil {
				check = "\n    kelvin_divides(" + m[1] + ", other);"
				divisions++
			}
			name := cFunction.FindStringSubmatch(block)[1]
			for k, c := range cChecks {
				if c.functions.MatchString(name) {
					check = "\n    " + c.check + ";"
					checks[k]++
				}
			}
			blocks[i] = strings.Replace(block, "PROTECT(", fmt.Sprintf("KELVIN_OP(%d, %s", n, check), 1)
			wrappers++
		}
		s = strings.Join(blocks, "\n}\n")
		met := []struct {
			what, anchor string
			found, want  int
		}{
			{"errors in the output buffer", cFunction.String(), wrappers, wrappersC},
			{"divisions are checked", cDivision.String(), divisions, divisionsC},
			{"element types are checked", cType.String(), len(cType.FindAllStringIndex(s, -1)), typesC},
			{"dimensions counted from the end", cDim.String(), len(cDim.FindAllStringIndex(s, -1)), dimsC},
			{"results are moved, not counted", cResult, strings.Count(s, cResult), resultsC},
		}
		for _, m := range met {
			if m.found != m.want {
				return "", edit{file: file, what: m.what, anchor: m.anchor}.changed(m.found, m.want)
			}
		}
		for k, c := range cChecks {
			if checks[k] != c.count {
				return "", edit{file: file, what: "what ends the process is checked",
					anchor: c.functions.String()}.changed(checks[k], c.count)
			}
		}
		s = strings.ReplaceAll(s, cResult, "new torch::Tensor(std::move(outputs__));")
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
	if shown == "" {
		shown, _, _ = strings.Cut(strings.TrimPrefix(slices, ", "), ",")
	}
	if shown != "" {
		shown = ", " + shown
	}
	f = f[:call[0]] + "\n" + guard.String() + "  " + f[call[0]:call[1]] + end.String() + f[call[1]:]
	return withBuffer(f, name, outputs, shown), true
}

// withBuffer gives a method a buffer for its outputs and its error, which names the method and the operands shown.
func withBuffer(f string, name []string, outputs int, shown string) string {
	if one := "newTensor(*ptr, "; strings.Count(f, "newTensor(*") == 1 && strings.Contains(f, one) {
		// The buffer of one result is part of its tensor.
		f = strings.Replace(f, "if err = TorchErr(); err != nil {\n    "+name[0],
			fmt.Sprintf("if *ptr == nil {\n    err = opError(%q, made.second%s)", name[1], shown), 1)
		f = strings.Replace(f, "ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))", "made, ptr := newResult()", 1)
		return goNew.ReplaceAllString(f, "made.adopted()")
	}
	f = strings.Replace(f, "if err = TorchErr(); err != nil {\n    "+name[0],
		fmt.Sprintf("if slot[0] == nil {\n    err = opError(%q, slot[1]%s)", name[1], shown), 1)
	f = strings.Replace(f, "ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))",
		fmt.Sprintf("var slot [%d]lib.Ctensor\n  ptr := &slot[0]", outputs+1), 1)
	f = strings.Replace(f, "ctensorPtr0 := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))",
		fmt.Sprintf("var slot [%d]lib.Ctensor\n  ctensorPtr0 := &slot[0]", outputs+1), 1)
	f = goPtrN.ReplaceAllString(f, "  ctensorPtr$1 := &slot[$1]")
	f = goNew.ReplaceAllString(f, fmt.Sprintf("adoptIn(*$1, slot[%d])", outputs))
	return strings.Replace(f, "ts.ctensor = *ptr", "ts.replace(*ptr)", 1)
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
