package gotch

// edits are the changes to gotch's hand-written files. The generated files are changed by rule: see generated.go.
func edits() []edit {
	return []edit{
		// Errors: a call reports in the buffer that it fills, so that no second call has to find a thread-local message.
		{file: "libtch/torch_api.h", what: "include Kelvin's declarations", kind: text,
			anchor:      "#include \"torch_api_generated.h\"\n",
			replacement: "#include \"kelvin.h\"\n#include \"torch_api_generated.h\"\n"},
		{file: "libtch/torch_api.h", what: "one error slot per thread, for both C++ files", kind: text,
			anchor: "thread_local char *torch_last_err = nullptr;", replacement: "extern thread_local char *torch_last_err;"},
		{file: "libtch/torch_api.h", what: "readable messages, and no exception that escapes", kind: text,
			anchor: "torch_last_err = strdup(e.what());                                         \\\n  }",
			replacement: "free(torch_last_err); torch_last_err = kelvin_message(e); \\\n" +
				"  } catch (...) { free(torch_last_err); torch_last_err = strdup(\"unknown C++ exception\"); }"},
		{file: "libtch/torch_api.h", what: "declare the message helper", kind: text,
			anchor:      "typedef torch::Tensor *tensor;",
			replacement: "char *kelvin_message(const std::exception &e);\ntypedef torch::Tensor *tensor;"},
		{file: "libtch/torch_api.h", what: "string functions", kind: text,
			anchor: "#include <stdexcept>\n", replacement: "#include <stdexcept>\n#include <string.h>\n#include <stdlib.h>\n"},
		{file: "libtch/torch_api.cpp", what: "define the error slot", kind: text,
			anchor:      "char *get_and_reset_last_err() {",
			replacement: "thread_local char *torch_last_err = nullptr;\n\nchar *get_and_reset_last_err() {"},

		{file: "libtch/torch_api.cpp", what: "element types are checked", kind: pattern,
			anchor: `(?:at|torch)::ScalarType\((type|dtype)\)`, replacement: "kelvin_type($1)", count: 3},
		{file: "libtch/torch_api.cpp", what: "a tensor that stands for many has no values", kind: text,
			anchor:      "  PROTECT(\n      if (elt_size_in_bytes != tensor->element_size())",
			replacement: "  PROTECT(\n      kelvin_readable(tensor); if (elt_size_in_bytes != tensor->element_size())"},
		{file: "libtch/torch_api.cpp", what: "the address of the values is a way to read them", kind: text,
			anchor: "PROTECT(return t->data_ptr();)", replacement: "PROTECT(kelvin_readable(t); return t->data_ptr();)"},

		{file: "libtch/torch_api_generated.cpp.h", what: "attention without a mask", kind: pattern,
			anchor: `(torch::scaled_dot_product_attention\(\*query, \*key, \*value, )` +
				`\(attn_mask \? \*attn_mask : torch::Tensor\(\)\)`,
			replacement: "${1}attn_mask && attn_mask->defined() ? c10::optional<torch::Tensor>(*attn_mask) : c10::nullopt"},

		// Numbers: a C int is four bytes, a Go int eight.
		{file: "libtch/tensor.go", what: "C ints", kind: pattern,
			anchor: `return \*\(\*int\)\(unsafe\.Pointer\(&(\w+)\)\)`, replacement: "return int($1)", count: 2},
		{file: "libtch/device.go", what: "C ints", kind: text,
			anchor: "return *(*int)(unsafe.Pointer(&t))", replacement: "return int(t)"},
		{file: "libtch/device.go", what: "unused import", kind: text, anchor: "import (\n\t\"unsafe\"\n)\n", replacement: ""},

		// Empty slices: the address of their first element does not exist.
		{file: "libtch/c-generated.go", what: "empty slices", kind: pattern,
			anchor: `&(\w+)\[0\]`, replacement: "unsafe.SliceData($1)", count: 921},
		{file: "libtch/patch.go", what: "empty slices", kind: pattern,
			anchor: `&(\w+)\[0\]`, replacement: "unsafe.SliceData($1)", count: 4},
		{file: "libtch/tensor.go", what: "empty slices", kind: pattern,
			anchor: `\(&(tupleData|genericListData|genericDictData|intListData|doubleListData|cboolListData|` +
				`tensorListData|padData|dims)\[0\]\)`,
			replacement: "(unsafe.SliceData($1))", count: 9},

		// Tensors: a plain handle that its scope frees.
		{file: "ts/tensor.go", what: "the tensor struct", kind: pattern,
			anchor: `(?s)type Tensor struct \{.*?\n\}`, replacement: tensorStruct},
		{file: "ts/tensor.go", what: "the padding of the tensor struct", kind: pattern,
			anchor: `(?s)type bigStruct struct \{.*?\n\}\n`, replacement: ""},
		{file: "ts/tensor.go", what: "constructor", kind: function, anchor: "func newTensor(",
			replacement: "func newTensor(ctensor lib.Ctensor, _ ...string) *Tensor {\n\treturn adopt(ctensor)\n}\n"},
		{file: "ts/tensor.go", what: "release", kind: function, anchor: "func freeCTensor(",
			replacement: "func freeCTensor(ts *Tensor) error {\n\tts.release()\n\treturn nil\n}\n"},
		{file: "ts/tensor.go", what: "name generator", kind: function, anchor: "func newName(",
			replacement: "func newName(nameOpt ...string) string {\n" +
				"\tif len(nameOpt) > 0 {\n\t\treturn nameOpt[0]\n\t}\n\treturn \"\"\n}\n"},
		{file: "ts/tensor.go", what: "name", kind: function, anchor: "func (ts *Tensor) Name() string {",
			replacement: "func (ts *Tensor) Name() string { return \"\" }\n"},
		{file: "ts/tensor.go", what: "drop", kind: function, anchor: "func (ts *Tensor) Drop() error {",
			replacement: "func (ts *Tensor) Drop() error {\n\tts.release()\n\treturn nil\n}\n"},
		{file: "ts/tensor.go", what: "shallow clone", kind: pattern,
			anchor:      `name := fmt\.Sprintf\("%s_cloned", ts\.name\)\n\treturn newTensor\(ctensor, name\), nil`,
			replacement: "return newTensor(ctensor), nil"},
		{file: "ts/tensor.go", what: "shape", kind: function, anchor: "func (ts *Tensor) Size() ([]int64, error) {",
			replacement: "func (ts *Tensor) Size() ([]int64, error) { return ts.sizes() }\n"},
		{file: "ts/tensor.go", what: "scalar read-out", kind: function, anchor: "func (ts *Tensor) Float64Value(",
			replacement: "func (ts *Tensor) Float64Value(idx []int64) (float64, error) { return ts.float64At(idx) }\n"},
		{file: "ts/tensor.go", what: "gradients of several inputs", kind: function, anchor: "func RunBackward(",
			replacement: "func RunBackward(tensors []*Tensor, inputs []*Tensor, keepGraphB bool, createGraphB bool) " +
				"([]*Tensor, error) {\n" +
				"\treturn KelvinGrad(tensors, inputs, nil, keepGraphB, createGraphB, false)\n}\n"},
		{file: "ts/tensor.go", what: "nested no-grad", kind: function, anchor: "func NoGrad(",
			replacement: "func NoGrad(fn func()) {\n" +
				"\tdefer lockThread()()\n\tdefer KelvinSetGradMode(KelvinSetGradMode(false))\n\tfn()\n}\n"},
		{file: "ts/tensor.go", what: "no-grad with a value", kind: function, anchor: "func NoGrad1(",
			replacement: "func NoGrad1(fn func() interface{}) interface{} {\n" +
				"\tdefer lockThread()()\n\tdefer KelvinSetGradMode(KelvinSetGradMode(false))\n\treturn fn()\n}\n"},
		{file: "ts/tensor.go", what: "nested no-grad guard", kind: function, anchor: "func (ngg *NoGradGuard) Drop() {",
			replacement: "func (ngg *NoGradGuard) Drop() { KelvinSetGradMode(ngg.enabled) }\n"},
		{file: "ts/tensor.go", what: "no-grad guard, off", kind: function, anchor: "func (ngg *NoGradGuard) Enable() {",
			replacement: "func (ngg *NoGradGuard) Enable() { KelvinSetGradMode(false) }\n"},
		{file: "ts/tensor.go", what: "an undefined tensor outlives every scope", kind: text,
			anchor: "var None = NewTensor()", replacement: "var None = undefinedTensor()"},
		{file: "ts/tensor.go", what: "values that cannot be read are not zero", kind: text,
			anchor: "\tts.CopyData(dataSlice, uint(numel))\n", replacement: "\tts.MustCopyData(dataSlice, uint(numel))\n"},
		{file: "ts/tensor.go", what: "output buffer", kind: text,
			anchor:      "\tptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))\n",
			replacement: "\tvar slot [4]lib.Ctensor\n\tptr := &slot[0]\n"},
		{file: "ts/patch.go", what: "output buffer of one", kind: text,
			anchor:      "\n\tptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))\n",
			replacement: "\n\tvar slot [8]lib.Ctensor\n\tptr := &slot[0]\n"},
		{file: "ts/patch.go", what: "output buffers of several", kind: text, count: 3,
			anchor:      "ctensorPtr1 := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))",
			replacement: "var slot [8]lib.Ctensor\n\tctensorPtr1 := &slot[0]"},
		{file: "ts/patch.go", what: "errors in the output buffer", kind: pattern, count: 4,
			anchor:      `(?s)(\tlib\.Atg\w+\((?:ctensorPtr1|ptr),[^\n]*\n\t(?:if )?err = )TorchErr\(\)`,
			replacement: "${1}slotError(slot[:])"},
		{file: "ts/patch.go", what: "lists of tensors: the array that carried them is freed", kind: pattern, count: 9,
			anchor:      `(?s)\tcurrentPtr := ctensorsPtr\n.*?\n\treturn retVal, nil\n`,
			replacement: "\treturn adoptList(ctensorsPtr), nil\n"},
		{file: "ts/patch.go", what: "a tensor passed by value is a copy of the caller's: dropping both frees it twice",
			kind: text, anchor: "\t\tdefer condition.MustDrop()\n", replacement: "\t\t_ = condition\n"},
		{file: "ts/patch.go", what: "no tensors to align", kind: text,
			anchor: "\tctensorsPtr := lib.AtgAlignTensors(",
			replacement: "\tif len(tensors) == 0 {\n\t\treturn retVal, noTensors(\"AlignTensors\")\n\t}\n" +
				"\tctensorsPtr := lib.AtgAlignTensors("},
		{file: "ts/util.go", what: "memory that there is not does not end the process", kind: text,
			anchor:      "\tdataPtr = C.malloc(C.size_t(nbytes))\n",
			replacement: "\tdataPtr = kelvinAlloc(nbytes)\n"},
		{file: "ts/util.go", what: "more than 4 GB of memory", kind: text,
			anchor:      "(*[1 << 32]byte)(dataPtr)[:nbytes:nbytes]",
			replacement: "unsafe.Slice((*byte)(dataPtr), nbytes)"},
		{file: "ts/error.go", what: "errors carry libtorch's message, not a stack dump", kind: function,
			anchor: "func TorchErr() error {", replacement: "func TorchErr() error { return threadError(\"\") }\n"},
		{file: "ts/error.go", what: "unused import", kind: text, anchor: "\t\"fmt\"\n\t\"runtime/debug\"\n", replacement: ""},
		{file: "ts/error.go", what: "unused import of the C interface", kind: text,
			anchor: "\n\tlib \"github.com/sugarme/gotch/libtch\"\n", replacement: ""},
		{file: "ts/scalar.go", what: "release of scalars", kind: function, anchor: "func freeCScalar(",
			replacement: "func freeCScalar(x *Scalar) error {\n\tx.release()\n\treturn nil\n}\n"},
		{file: "ts/scalar.go", what: "scalar constructor", kind: function, anchor: "func newScalar(",
			replacement: "func newScalar(cscalar lib.Cscalar, _ ...string) *Scalar {\n\treturn adoptScalar(cscalar, nil)\n}\n"},
		{file: "ts/scalar.go", what: "integer scalars", kind: function, anchor: "func IntScalar(",
			replacement: "func IntScalar(v int64) *Scalar { return kelvinIntScalar(v) }\n"},
		{file: "ts/scalar.go", what: "float scalars", kind: function, anchor: "func FloatScalar(",
			replacement: "func FloatScalar(v float64) *Scalar { return kelvinFloatScalar(v) }\n"},
		{file: "ts/scalar.go", what: "scalar struct", kind: pattern,
			anchor: `(?s)type Scalar struct \{.*?\n\}`, replacement: scalarStruct},
		{file: "ts/scalar.go", what: "unused imports", kind: pattern, count: 2,
			anchor: `\t"runtime"\n\t"sync/atomic"\n|\t"github.com/sugarme/gotch"\n`, replacement: ""},
		{file: "ts/tensor.go", what: "unused import", kind: text, anchor: "\t\"sync/atomic\"\n", replacement: ""},
		{file: "device.go", what: "a device that does not exist does not end the process", kind: pattern, count: 3,
			anchor: `log\.Fatal(?:f)?\(`, replacement: "kelvinFatalf("},
		{file: "device.go", what: "unused import", kind: text, anchor: "\t\"log\"\n\n", replacement: ""},
		{file: "device.go", what: "main memory is the one device CPU", kind: text,
			anchor: `return Device{Name: "CPU", Value: 1}`, replacement: "return CPU"},
		{file: "device.go", what: "a device without a name", kind: text, anchor: `"Not reachable"`,
			replacement: `"device %q is neither CPU nor CUDA", d.Name`},
		{file: "init.go", what: "no folder is made, and no process ended, by importing the package", kind: pattern,
			anchor: `(?s)if _, err := os\.Stat\(CachedDir\).*?\n\t\}\n\}`, replacement: "}"},
		{file: "init.go", what: "unused import", kind: text, anchor: "\t\"log\"\n", replacement: ""},
	}
}

const tensorStruct = `type Tensor struct {
	ctensor lib.Ctensor
	second  lib.Ctensor // with ctensor the output buffer of the operation that made the tensor
	uses    uint32 // in flight, and whether the tensor was freed
	scope   uint32 // the number of the scope that frees it; 0 when nothing but Drop or the garbage collector does
	bytes   int64  // what the tensor counts for in the unscoped total
}`

const scalarStruct = `type Scalar struct {
	cscalar lib.Cscalar
	uses    uint32 // in flight, and whether the scalar was freed
	scoped  bool   // a scope frees it, not the garbage collector
}`
