package cluster

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Spec is what a job runs.
type Spec struct {
	Program infer.Program // as given to Sample
	Method  infer.Method  // with the same settings
	Batches infer.Batches // nil is all of the program's data in every update
}

var (
	registryLock sync.Mutex
	registry     = map[string]func(params []byte, data infer.Batch) (Spec, error){}
)

// Register says how a worker of this binary builds the job of that name: from its parameters, which are JSON, and from
// the data of the program that was given to [Sample]. It is called before [Work] or [Sample]. A name that is registered
// again is replaced.
func Register(name string, build func(params []byte, data infer.Batch) (Spec, error)) {
	registryLock.Lock()
	defer registryLock.Unlock()
	registry[name] = build
}

// build makes the spec of a job. A panic of the user's function is an error.
func build(name string, params []byte, data infer.Batch) (spec Spec, err error) {
	registryLock.Lock()
	f, ok := registry[name]
	var names []string
	for n := range registry {
		names = append(names, n)
	}
	registryLock.Unlock()
	if !ok || f == nil {
		slices.Sort(names)
		return spec, &MismatchError{What: "job", Client: fmt.Sprintf("%q", name),
			Worker: fmt.Sprintf("one of %q", names)}
	}
	defer func() {
		if v := recover(); v != nil {
			err = &infer.PanicError{In: "job " + name, Value: v, Stack: string(debug.Stack())}
		}
	}()
	if spec, err = f(params, data); err != nil {
		return spec, err
	}
	if spec.Program == nil || spec.Method == nil {
		return spec, fmt.Errorf("job %s: program or method is nil: %w", name, infer.ErrConfig)
	}
	return spec, nil
}
