package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Model is what a worker can run: no code travels, so both sides have it in their binary.
type Model struct {
	// Program makes the program from the data, which travel by their hash.
	Program func(data infer.Batch) (infer.Program, error)
	// Methods are the methods that may be asked for, by name. A method may hold functions, which cannot travel.
	Methods map[string]infer.Method
	// Batches makes the minibatches of a task; nil gives all of the data in every update.
	Batches func(data infer.Batch, seed uint64) (infer.Batches, error)
}

var registered = struct {
	sync.RWMutex
	models map[string]Model
}{models: map[string]Model{}}

// Register names a model. Call it before [Sample] and [Work], with the same name in all processes; a later call
// replaces the model.
func Register(name string, m Model) error {
	if name == "" || m.Program == nil || len(m.Methods) == 0 {
		return &infer.FieldError{Type: "cluster.Model", Field: "Program", Value: fmt.Sprintf("%q", name),
			Allowed: "a model needs a name, a Program and at least one of Methods"}
	}
	registered.Lock()
	defer registered.Unlock()
	registered.models[name] = m
	return nil
}

// lookUp finds a registered model.
func lookUp(name string) (Model, error) {
	registered.RLock()
	defer registered.RUnlock()
	m, ok := registered.models[name]
	if !ok {
		have := make([]string, 0, len(registered.models))
		for n := range registered.models {
			have = append(have, n)
		}
		slices.Sort(have)
		return m, fmt.Errorf("the model %q is not registered in this binary, which has %q: %w", name, have, ErrRefused)
	}
	return m, nil
}

// named finds the name of a method of a model. Functions cannot be compared, so that methods that differ in functions
// alone need a name.
func (m Model) named(method infer.Method, name string) (string, error) {
	want := describe(method)
	if name != "" {
		own, ok := m.Methods[name]
		switch {
		case !ok:
			return "", &infer.FieldError{Type: optionsName, Field: "Method", Value: fmt.Sprintf("%q", name),
				Allowed: "it must be one of the model's Methods"}
		case describe(own) != want:
			return "", &infer.FieldError{Type: optionsName, Field: "Method", Value: fmt.Sprintf("%q", name),
				Allowed: fmt.Sprintf("the method of that name is %s, the argument %s", describe(own), want)}
		}
		return name, nil
	}
	var found []string
	for n, own := range m.Methods {
		if describe(own) == want {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	if len(found) != 1 {
		return "", &infer.FieldError{Type: optionsName, Field: "Method", Value: `""`,
			Allowed: fmt.Sprintf("%d of the model's Methods are %s %q: give the name of one", len(found), want, found)}
	}
	return found[0], nil
}

// describe is a value in words, with functions as such: schedules are functions.
func describe(v any) string {
	var b strings.Builder
	write(&b, reflect.ValueOf(v), 0)
	return b.String()
}

func write(b *strings.Builder, v reflect.Value, depth int) {
	if !v.IsValid() || depth > 8 {
		b.WriteString("nil")
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		write(b, v.Elem(), depth+1)
	case reflect.Func:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		b.WriteString("func")
	case reflect.Struct:
		b.WriteString(v.Type().String() + "{")
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				b.WriteString(v.Type().Field(i).Name + ":")
				write(b, f, depth+1)
				b.WriteString(" ")
			}
		}
		b.WriteString("}")
	default:
		fmt.Fprint(b, v)
	}
}
