package infer

import (
	"errors"
	"fmt"
	"maps"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// fuller is a program that can tell whether a batch is all of the data that it counts, as a compiled model can. For a
// batch of another size its error wraps a shortage.
type fuller interface{ CheckFull(Batch) error }

// shortage says that a batch has used of the size data of a plate, or of a variable that is in none.
type shortage interface {
	error
	Part() (plate string, used, size int)
}

// whole is all of the data of the run: what [Full] was given, or the batch of the program. It is in main memory, where
// draws are, and in the types of the program.
func (s *session) whole() (Batch, error) {
	f, ok := s.batches.(*full)
	if !ok || maps.Equal(f.batch, s.program.Batch()) {
		return s.program.Batch(), nil
	}
	out, err := f.typed.of(f.batch)
	if p, ok := s.program.(converter); ok && f.typed == nil {
		out, err = p.ConvertBatch(f.batch)
	}
	if err != nil {
		return nil, err
	}
	moved := maps.Clone(out)
	for name, t := range out {
		if t == (torch.Tensor{}) {
			continue
		}
		device, err := torch.DeviceOf(t)
		var dtype gotch.DType
		if err == nil {
			dtype, err = torch.DTypeOfTensor(t)
		}
		if err == nil && device != torch.CPU {
			moved[name], err = torch.To(t, torch.CPU, dtype)
		}
		if err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", name, err)
		}
	}
	return moved, nil
}

// partial says whether all that the run has of the data is a part of what the program counts. Tensors of the batch that
// are no columns of data, such as scalars and tables, do not tell.
func (s *session) partial() bool {
	if p, ok := s.program.(fuller); ok {
		var short shortage
		return errors.As(p.CheckFull(s.all), &short)
	}
	n, err := s.all.Size()
	return err == nil && float64(n) < s.data
}

// checkWhole refuses minibatches for a method that needs all of the data in every update, such as optim.LBFGS: the
// curvature that it sees from one gradient to the next would be that of other data.
func (s *session) checkWhole() error {
	t, ok := s.transform.(interface{ NeedsWhole() bool })
	if !ok || !t.NeedsWhole() {
		return nil
	}
	switch b := s.batches.(type) {
	case *full:
		return nil
	case *minibatches:
		if b.o.Size == b.n {
			return nil
		}
	}
	return &FieldError{Type: optionsName, Field: "Batches", Value: "given",
		Allowed: s.name + " needs all of the data in every update: leave it nil, or give infer.Full. Minibatches are for " +
			"optim.SGD, optim.Adam and optim.AdamW, sgmcmc, vi and svi; laplace takes them with an optimiser that does, as " +
			"in Optimizer: optim.Adam{}"}
}

// otherTotal is the error of batches of n data, where what is named counts another number.
func otherTotal(given string, n int, where string, size int, remedy string) error {
	return &FieldError{Type: optionsName, Field: "Batches", Value: fmt.Sprintf("%s %d data", given, n),
		Allowed: fmt.Sprintf("%s counts %d: %s", where, size, remedy)}
}

// checkFull refuses one batch for all updates that has another number of data than the program counts. A datum would be
// weighted by the wrong number, and the posterior would be another.
func (s *session) checkFull(data int) error {
	f, ok := s.batches.(*full)
	_, climbs := s.program.(climbing) // for a run that has been checked
	if !ok || climbs {
		return nil
	}
	const given = "infer.Full of"
	n, err := f.batch.Size()
	if err != nil {
		n = 0 // its parts have no common size
	}
	p, ok := s.program.(fuller)
	if !ok {
		have, err := s.program.Batch().Size()
		if _, own := s.program.(handwritten); own && err == nil && have == data && n > 0 && n != data {
			return otherTotal(given, n, "the program", data, "give all of them, or say so in the target, as in infer.Mean(f, n)")
		}
		return nil
	}
	all := func(size int) string {
		text := fmt.Sprintf("give infer.Full all %d", size)
		_, drives := s.transform.(Driver)
		if t, ok := s.transform.(interface{ NeedsWhole() bool }); !drives && !(ok && t.NeedsWhole()) {
			text += ", or infer.Minibatches of all of them"
		}
		return text + "; if these are all of the data, compile the model on them"
	}
	batch, err := s.whole()
	if err == nil {
		err = p.CheckFull(batch)
	}
	if err == nil {
		return nil
	}
	var short shortage
	if errors.As(err, &short) {
		plate, used, size := short.Part()
		where := "a variable in no plate"
		if plate != "" {
			where = fmt.Sprintf("plate %q of the program", plate)
		}
		return otherTotal(given, used, where, size, all(size))
	}
	// Where the model does not run on the batch, its size may say why; else the run tells the error.
	if size, _ := s.population(); size > 0 && n > 0 && n != size {
		return otherTotal(given, n, "the program", size, all(size))
	}
	return nil
}

// population is how many data the program counts, in rows of its batch: those of the batch, or as many as the plate has
// of which that is a part. With plates in plates that is less than N, which counts a row several times. It is 0 where
// nothing is known.
func (s *session) population() (rows int, plate string) {
	p, ok := s.program.(fuller)
	n, err := s.program.Batch().Size()
	if !ok || err != nil {
		return 0, ""
	}
	if err = p.CheckFull(s.program.Batch()); err == nil {
		return n, ""
	}
	var short shortage
	if !errors.As(err, &short) {
		return 0, ""
	}
	plate, used, size := short.Part()
	if each := used / n; used%n == 0 && each > 0 && size%each == 0 { // a row may be several of the plate
		return size / each, plate
	}
	return 0, ""
}

// checkTotal refuses minibatches of another number of data than the program counts. A datum would be weighted by the
// wrong number, and the posterior would be another.
func (s *session) checkTotal(data int) error {
	b, ok := s.batches.(*minibatches)
	_, own := s.program.(handwritten)
	_, climbs := s.program.(climbing) // for a run that has been checked
	if !ok || climbs || own && data <= 1 {
		return nil
	}
	const given = "of"
	have, err := s.program.Batch().Size()
	same := err == nil && have == b.n
	if own {
		if same || b.n == data {
			return nil
		}
		return otherTotal(given, b.n, "the program", data, "say so in the target, as in infer.Mean(f, n)")
	}
	if same && b.n == data {
		return nil
	}
	rows, plate := s.population()
	switch {
	case rows == b.n:
		return nil
	case rows == 0 && (same || b.n > 1 && data%b.n == 0): // N may count a row of the batch several times
		return nil
	case plate != "":
		return otherTotal(given, b.n, fmt.Sprintf("plate %q of the program", plate), rows,
			fmt.Sprintf("make the minibatches of all %d, or give the plate the size of the data", rows))
	case rows > b.n:
		return otherTotal(given, b.n, "the program", rows, fmt.Sprintf("make the minibatches of all %d; if these are all "+
			"of the data, compile the model on them", rows))
	case rows == 0:
		rows = data
	}
	return otherTotal(given, b.n, "the program", rows,
		"compile on all of the data, or declare the plate with ppl.Minibatch")
}
