// Package cc turns a plan into C, has the machine's C compiler make a shared object of it, keeps the object in the
// user's cache, and loads it. What a plan means, package ir says, and machines without a compiler have package vm.
package cc

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Limits of what is compiled: beyond them a compiler takes minutes.
const (
	maxInstructions = 20000
	maxText         = 4 << 20 // bytes
)

// TooLargeError is the error of a plan that is too large for a C compiler.
type TooLargeError struct{ Instructions, Bytes int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("cc: the plan has %d instructions (at most %d) and %d bytes of C (at most %d)",
		e.Instructions, maxInstructions, e.Bytes, maxText)
}

// UnsupportedError is the error of a step that has no order-independent meaning, which C would need.
type UnsupportedError struct {
	Step   int
	Reason string
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("cc: step %d: %s", e.Step, e.Reason) }

//go:embed helpers.h
var helpers string

//go:embed special.h
var special string

// Emit writes a plan, which must have passed its checks, as one C file. It defines kelvin_prologue and kelvin_main,
// both of type kelvin_fn, and kelvin_abi, the version of the interface. The text depends on no machine and on no data
// except constants of one number, so that equal models have equal texts.
func Emit(p *ir.Plan) (string, error) {
	body, err := emitPlan(p, "")
	if err != nil {
		return "", err
	}
	return preamble() + body, nil
}

func preamble() string {
	return "// Made by Kelvin. Do not edit.\n" + common() + "\nconst int kelvin_abi = KELVIN_ABI;\n"
}

// common is what plans need, whatever becomes of their C.
func common() string { return Header + "\n" + helpers + "\n" + special }

// emitPlan writes the two functions of a plan; the suffix ends their names.
func emitPlan(p *ir.Plan, suffix string) (string, error) {
	if n := instructions(p.Prologue) + instructions(p.Steps); n > maxInstructions {
		return "", &TooLargeError{Instructions: n}
	}
	var text strings.Builder
	if err := emitPart(p, &text, "prologue", suffix, p.Prologue); err != nil {
		return "", err
	}
	if err := emitPart(p, &text, "main", suffix, p.Steps); err != nil {
		return "", err
	}
	return text.String(), nil
}

// step writes one step.
func (f *function) step(i int, s *ir.Step) error {
	f.line("{ // step %d", i)
	defer f.line("}")
	if s.Parts > 0 {
		return f.parts(i, s)
	}
	if s.Kind == ir.Repeat {
		f.line("for (long turn = 0; turn < %d; turn++) {", s.Times)
		defer f.line("}")
		for k := range s.Inner {
			if err := f.step(i, &s.Inner[k]); err != nil {
				return err
			}
		}
		return nil
	}
	if s.Kind != ir.Loop {
		return f.matrix(i, s)
	}
	return f.loop(i, s)
}

// parts writes what one part of a Repeat does.
func (f *function) parts(i int, s *ir.Step) error {
	for k, inner := range [][]ir.Step{s.Before, s.Inner, s.After} {
		turns := "{ const long turn = part;"
		if k == 1 {
			turns = fmt.Sprintf("for (long turn = part*%d/%d; turn < (part+1)*%d/%d; turn++) {", s.Times, s.Parts, s.Times,
				s.Parts)
		}
		f.line("%s", turns)
		for k := range inner {
			if err := f.step(i, &inner[k]); err != nil {
				return err
			}
		}
		f.line("}")
	}
	for b, at := range f.places {
		if at == pointer && f.plan.Buffers[b].Kind == ir.Work && f.own[b] {
			return &UnsupportedError{i, "its parts have too much memory of their own"}
		}
	}
	return nil
}
