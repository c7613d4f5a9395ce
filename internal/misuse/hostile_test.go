package main

import (
	"context"
	"io"
	"math"
	"reflect"
)

// made is a value of a type that is right for most functions: one of good, or made of such; zero where none is known.
func made(t reflect.Type, depth int) reflect.Value {
	if f, ok := good[t]; ok {
		v := reflect.New(t).Elem()
		if x := f(); x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return v
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if depth < 4 {
			for range 2 {
				v = reflect.Append(v, made(t.Elem(), depth+1))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		if depth < 4 {
			v.SetMapIndex(made(t.Key(), depth+1), made(t.Elem(), depth+1))
		}
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct && depth < 2 {
			v.Set(reflect.New(t.Elem()))
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for i := range t.NumOut() {
				if t.Out(i) == of[error]() {
					out = append(out, reflect.Zero(t.Out(i)))
				} else {
					out = append(out, made(t.Out(i), depth+1))
				}
			}
			return out
		}))
	}
	return v
}

// hostile are values of a type that a mistake or an attacker may give.
func hostile(t reflect.Type, depth int) (out []reflect.Value) {
	add := func(x any) { out = append(out, reflect.ValueOf(x).Convert(t)) }
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		for _, x := range []int{0, -1, -3, 1 << 40, math.MaxInt64, math.MinInt64} {
			add(x)
		}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		for _, x := range []int{-1, 100} {
			add(x)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		add(uint64(math.MaxUint64))
	case reflect.Float32, reflect.Float64:
		for _, x := range []float64{0, -1, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)} {
			add(x)
		}
	case reflect.String:
		for _, x := range []string{"", "no such thing", "\x00\xff", "../../\n"} {
			add(x)
		}
	case reflect.Slice:
		out = append(out, reflect.Zero(t), reflect.MakeSlice(t, 0, 0), reflect.MakeSlice(t, 1, 1), reflect.MakeSlice(t, 7, 7))
		if depth < 2 {
			for _, x := range hostile(t.Elem(), depth+1) {
				out = append(out, reflect.Append(reflect.MakeSlice(t, 0, 2), x, x))
			}
		}
	case reflect.Map:
		out = append(out, reflect.Zero(t), reflect.MakeMap(t))
		if depth < 2 {
			for _, x := range hostile(t.Elem(), depth+1) {
				m := reflect.MakeMap(t)
				m.SetMapIndex(made(t.Key(), 0), x)
				out = append(out, m)
			}
		}
	case reflect.Pointer:
		out = append(out, reflect.Zero(t))
	case reflect.Func:
		out = append(out, reflect.Zero(t), reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { panic(errThrown) }),
			reflect.MakeFunc(t, func([]reflect.Value) (zeros []reflect.Value) {
				for i := range t.NumOut() {
					zeros = append(zeros, reflect.Zero(t.Out(i)))
				}
				return zeros
			}))
	case reflect.Interface:
		out = append(out, reflect.Zero(t))
		for _, x := range []any{failing{}, "text", math.NaN(), -3, struct{}{}} {
			if reflect.TypeOf(x).AssignableTo(t) && t != of[context.Context]() && t != of[error]() {
				v := reflect.New(t).Elem()
				v.Set(reflect.ValueOf(x))
				out = append(out, v)
			}
		}
	case reflect.Struct:
		out = append(out, reflect.Zero(t))
		if depth > 1 {
			break
		}
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				continue
			}
			for _, x := range hostile(t.Field(i).Type, depth+1) {
				v := reflect.New(t).Elem()
				v.Set(made(t, 0))
				v.Field(i).Set(x)
				out = append(out, v)
			}
		}
	}
	return out
}

var _ io.Reader = failing{}
