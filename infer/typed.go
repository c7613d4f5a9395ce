package infer

import (
	"fmt"
	"maps"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// converter is a program that knows the types of the data that its density calculates with, as a compiled model does.
// A batch of those types comes back itself.
type converter interface {
	ConvertBatch(Batch) (Batch, error)
}

// convert gives the batches of a run the types that the program calculates with, so that no evaluation has to. At
// points of float32, and where a method says so, data stay as they are. The user's iterator moves on as before, and
// fingerprints are those of its data.
func (s *session) convert(start Params) error {
	p, ok := s.program.(converter)
	whole := s.program.Batch()
	if f, ok := s.batches.(*full); ok {
		whole = f.batch
	}
	s.all = whole
	if t, own := s.transform.(interface{ KeepsTypes() bool }); own && t.KeepsTypes() {
		return nil
	}
	if !ok || start.Flat.T().DType() != gotch.Double {
		return nil
	}
	all, err := newTyped(p, s.all)
	if err != nil {
		return err
	}
	if all != nil {
		s.all = all.batch
	}
	once := func(data Batch) (*typed, error) {
		if maps.Equal(data, whole) {
			return all, nil
		}
		return newTyped(p, data)
	}
	switch b := s.batches.(type) {
	case *full:
		t, err := once(b.batch)
		if t != nil {
			s.batches = &full{batch: b.batch, typed: t, given: b.given}
		}
		return err
	case *minibatches:
		t, err := once(b.data)
		if t != nil {
			s.batches = &minibatches{data: b.data, typed: t, walk: b.walk}
		}
		return err
	}
	s.batches = converting{s.batches, p}
	return nil
}

// converting converts each batch of the user's as it comes.
type converting struct {
	Batches
	to converter
}

func (c converting) Next() (Batch, error) {
	b, err := c.Batches.Next()
	if err != nil {
		return nil, err
	}
	return c.to.ConvertBatch(b)
}

// typed are data in other types, made once for a run.
type typed struct {
	batch Batch
	parts []typedPart // those whose type is another
}

// typedPart is a part of the data in another type, up to a version: each change in place makes another.
type typedPart struct {
	name     string
	from, to torch.Tensor
	version  int
}

// newTyped is nil where the types of the data are right.
func newTyped(p converter, data Batch) (*typed, error) {
	batch, err := p.ConvertBatch(data)
	if err != nil {
		return nil, err
	}
	t := &typed{batch: batch}
	for name, to := range batch {
		if from := data[name]; from != to {
			torch.Detach(to)
			t.parts = append(t.parts, typedPart{name, from, to, int(from.T().Must_Version(false))})
		}
	}
	if len(t.parts) == 0 {
		return nil, nil
	}
	return t, nil
}

// of are the data in the types of t; without t the data themselves. What was changed in place is copied anew.
func (t *typed) of(data Batch) (Batch, error) {
	if t == nil {
		return data, nil
	}
	for i := range t.parts {
		p := &t.parts[i]
		if torch.Freed(p.from) {
			return nil, fmt.Errorf("batch tensor %q was freed: %w", p.name, ErrConfig)
		}
		now := p.from.T().Must_Version(false)
		if int(now) == p.version {
			continue
		}
		values, err := torch.ToSlice[float64](p.from) // what is converted is float64, or small whole numbers
		if err == nil {
			err = torch.CopyFrom(p.to, values)
		}
		if err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", p.name, err)
		}
		p.version = int(now)
	}
	return t.batch, nil
}
