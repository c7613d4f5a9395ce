// Package preset has what the settings of papers share: a choice by name, and a comparison with the figures of a paper.
package preset

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Pick is the preset of a name. The error of another name says which there are.
func Pick[S any](name string, all map[string]S) (s S, err error) {
	s, ok := all[name]
	if !ok {
		err = fmt.Errorf("-preset is %q: it must be one of %s", name, Names(all))
	}
	return s, err
}

// Names are those of the presets, with commas.
func Names[S any](all map[string]S) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

// Apply sets the flags of a preset, but those that were given. Without a name it sets none.
func Apply(flags *flag.FlagSet, name string, all map[string]map[string]string) error {
	if name == "" {
		return nil
	}
	chosen, err := Pick(name, all)
	if err != nil {
		return err
	}
	chosen = maps.Clone(chosen)
	flags.Visit(func(f *flag.Flag) { delete(chosen, f.Name) })
	for flag, value := range chosen {
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("-preset %s: -%s: %w", name, flag, err)
		}
	}
	return nil
}

// Paper has, for each field of a preset, the value that a paper gives it and the place where it does.
type Paper map[string][2]any

// Compare is an error where a field of a preset has another value than the paper, or is in one of the two alone.
func Compare(preset any, paper Paper) error {
	v := reflect.ValueOf(preset)
	for i := range v.NumField() {
		field, have := v.Type().Field(i).Name, v.Field(i).Interface()
		if figure, ok := paper[field]; !ok || figure[1] == "" || !reflect.DeepEqual(have, figure[0]) {
			return fmt.Errorf("%s is %v, and in the paper %v", field, have, figure)
		}
	}
	if len(paper) != v.NumField() {
		return fmt.Errorf("the paper has %d fields, and the preset %d", len(paper), v.NumField())
	}
	return nil
}
