package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// identity is what must be equal for equal bits.
type identity struct {
	Build     string `json:"build"` // of the binary: the SHA-256 of its file
	LibTorch  string `json:"libtorch"`
	Processor string `json:"processor"`
	Threads   int    `json:"threads"` // of one operation
	Data      string `json:"data"`    // fingerprint of the batches
	Method    string `json:"method"`  // its type and settings
	Layout    string `json:"layout"`  // sites of the program
}

// MismatchError says what differs between the process that asks for a run and a worker, which did not run the task.
type MismatchError struct {
	What   string // build, libtorch, processor, threads, data, method, layout or job
	Client string // what the run asks for
	Worker string // what the worker has
	Name   string // of the worker
}

// Error names what differs, and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("worker %s cannot run tasks of this run: its %s is %s, the run's is %s", e.Name, e.What,
		e.Worker, e.Client)
}

// machineDiffers finds the first difference of build and machine that matters; nil for none. mixed allows other
// machines.
func (i identity) machineDiffers(own identity, mixed bool) *MismatchError {
	if i.Build != own.Build {
		return &MismatchError{What: "build", Client: i.Build, Worker: own.Build}
	}
	if mixed {
		return nil
	}
	return first([][3]any{{"libtorch", i.LibTorch, own.LibTorch}, {"processor", i.Processor, own.Processor},
		{"threads", i.Threads, own.Threads}})
}

// jobDiffers does so for what the job has built.
func (i identity) jobDiffers(own identity) *MismatchError {
	return first([][3]any{{"data", i.Data, own.Data}, {"method", i.Method, own.Method},
		{"layout", i.Layout, own.Layout}})
}

func first(pairs [][3]any) *MismatchError {
	for _, p := range pairs {
		if p[1] != p[2] {
			return &MismatchError{What: fmt.Sprint(p[0]), Client: fmt.Sprint(p[1]), Worker: fmt.Sprint(p[2])}
		}
	}
	return nil
}

// machine is the part of the identity that a process has once and for all.
var machine = sync.OnceValues(func() (identity, error) {
	build, err := binaryHash()
	library := torch.Library()
	return identity{Build: build, LibTorch: library.Version, Threads: library.Threads, Processor: processor()}, err
})

// identify is the identity of a run of a job.
func identify(program infer.Program, method infer.Method, batches infer.Batches) (identity, error) {
	i, err := machine()
	if err != nil {
		return i, err
	}
	if batches == nil {
		batches = infer.Full(program.Batch())
	}
	if i.Data, err = batches.Fingerprint(); err != nil {
		return i, err
	}
	i.Method, i.Layout = describe(method), program.Layout().String()
	return i, nil
}

// describe names a method and its settings, as far as they are data: of functions and tensors only whether they are
// there.
func describe(method infer.Method) string {
	return settingsOf(reflect.ValueOf(method), 0)
}

// nested is how deep settings are described.
const nested = 6

func settingsOf(v reflect.Value, depth int) string {
	if !v.IsValid() || depth > nested {
		return ""
	}
	switch v.Kind() {
	case reflect.Struct:
		text := v.Type().String() + "{"
		for i := range v.NumField() {
			text += v.Type().Field(i).Name + ":" + settingsOf(v.Field(i), depth+1) + " "
		}
		return text + "}"
	case reflect.Slice, reflect.Array:
		text := "["
		for i := range v.Len() {
			text += settingsOf(v.Index(i), depth+1) + " "
		}
		return text + "]"
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		if v.Type() == reflect.TypeFor[torch.Tensor]() {
			return "tensor"
		}
		return settingsOf(v.Elem(), depth+1)
	case reflect.Func, reflect.Map, reflect.Chan:
		return fmt.Sprint(v.Type(), !v.IsNil())
	case reflect.UnsafePointer, reflect.Uintptr:
		return ""
	}
	return fmt.Sprint(v) // numbers, strings and truth values
}

func binaryHash() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// processor names the kind of processor: its model and the vector instructions that libtorch chooses its kernels by.
func processor() string {
	kind := runtime.GOOS + "/" + runtime.GOARCH
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return kind
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			kind += " " + strings.TrimSpace(value)
		case "flags", "Features":
			for _, flag := range []string{"avx2", "fma", "avx512f", "sve"} {
				if strings.Contains(strings.TrimSpace(value)+" ", " "+flag+" ") {
					kind += " " + flag
				}
			}
		case "":
			return kind // after the first core
		}
	}
	return kind
}
