package portable

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// File is an exported model. Its bytes are
//
//	16 bytes   "kelvin export\r\n\x00"
//	uint32     the version of the format: 1, 2 with Predictive or Draws, or 3 with Likelihood
//	uint64     the length of the body
//	body       five parts, each with its length before it, of version 2 two more, and of version 3 other two:
//	           JSON of the fields that are no plan; the data, tensors by name; the plans of Density, Named and
//	           Pointwise (empty for nil); Predictive; the numbers of Draws; Likelihood with data of its own; the numbers
//	           of Points
//	32 bytes   SHA-256 of all before
//
// with numbers little-endian. In a plan whole numbers are signed varints as in encoding/binary, others the bits of
// float64, and what a count says how many there are follows the count. Its order is that of the function that writes
// it. A reader refuses other versions.
type File struct {
	Sites []draws.Site `json:"sites"` // the layout on unconstrained space
	Data  int64        `json:"data"`  // how many data the model has
	// Chains start uniformly within Radius of Centre, on unconstrained space.
	Centre []float64 `json:"centre"`
	Radius []float64 `json:"radius"`
	// NoLikelihood says why there is no log likelihood of each datum.
	NoLikelihood string `json:"no_likelihood,omitempty"`

	// Density is log prior + log likelihood + weight · log |Jacobian|. The Sites of Named are the named values at a
	// point, those of Pointwise the log likelihood of each datum; Pointwise may be nil.
	Density, Named, Pointwise *Plan `json:"-"`

	// Predictive is what the model predicts; it may be nil, and NoPrediction says why.
	Predictive   *Prediction `json:"-"`
	NoPrediction string      `json:"no_prediction,omitempty"`

	// Draws are those of the posterior, without statistics, and Design is what makes the data of a prediction from rows:
	// JSON of a data.Design. Both may be nil.
	Draws  *draws.Draws    `json:"-"`
	Design json.RawMessage `json:"design,omitempty"`
	Drawn  *drawn          `json:"draws,omitempty"`

	// Likelihood is the log density of each observed value of rows, any number of them, at a draw: its Sites are those
	// that are observed, and no random numbers are taken. Points are Draws on unconstrained space, one after the other.
	// Both may be nil, and NoUpdate says why.
	Likelihood *Prediction `json:"-"`
	Points     [][]float64 `json:"-"`
	NoUpdate   string      `json:"no_update,omitempty"`

	Sum [sha256.Size]byte `json:"-"` // of the bytes that were read
}

// drawn is how draws lie in their part of a file.
type drawn struct {
	Sites   []draws.Site      `json:"sites"`
	Lengths []int             `json:"lengths"` // of the chains
	Attrs   map[string]string `json:"attrs,omitempty"`
}

// pack makes the numbers of the draws.
func (f *File) pack() []byte {
	if f.Draws == nil {
		return nil
	}
	f.Drawn = &drawn{Sites: f.Draws.Sites(), Attrs: f.Draws.Attrs()}
	c := &codec{}
	for chain := range f.Draws.Chains() {
		f.Drawn.Lengths = append(f.Drawn.Lengths, f.Draws.Len(chain))
		for k := range f.Draws.Len(chain) {
			row := f.Draws.Row(chain, k)
			c.numbers(&row, len(row))
		}
	}
	return c.b
}

// unpack makes the draws of their numbers.
func (f *File) unpack(b string) error {
	if f.Drawn == nil {
		if b != "" {
			return errCut
		}
		return nil
	}
	d, err := draws.New(f.Drawn.Sites, nil, len(f.Drawn.Lengths))
	if err != nil {
		return fmt.Errorf("portable: the draws: %w", err)
	}
	c := &codec{b: []byte(b), reading: true}
	for chain, n := range f.Drawn.Lengths {
		if n < 0 || n > len(c.b)/8/max(d.Dim(), 1) {
			return errCut
		}
		for range n {
			var row []float64
			c.numbers(&row, d.Dim())
			if err := d.AppendChain(chain, row, nil); err != nil {
				return fmt.Errorf("portable: the draws: %w", err)
			}
		}
	}
	for name, v := range f.Drawn.Attrs {
		d.SetAttr(name, v)
	}
	d.SetSpace(draws.Named)
	f.Draws = d
	return c.end()
}

// packLikelihood makes the parts of version 3.
func (f *File) packLikelihood() []string {
	own, numbers := &codec{}, &codec{}
	for _, part := range encoded(f.Likelihood) {
		own.text(&part)
	}
	for _, x := range f.Points {
		numbers.numbers(&x, len(x))
	}
	return []string{string(own.b), string(numbers.b)}
}

// unpackLikelihood reads them.
func (f *File) unpackLikelihood(likelihood, points string) (err error) {
	own, both := &codec{b: []byte(likelihood), reading: true}, make([]string, 2)
	for i := range both {
		own.text(&both[i])
	}
	if err = own.end(); err != nil {
		return err
	}
	if _, f.Likelihood, err = decoded(both, 0); err != nil {
		return err
	}
	if f.Likelihood == nil || !f.Likelihood.Free || len(f.Likelihood.takes) > 0 || f.Draws == nil {
		return errCut
	}
	numbers := &codec{b: []byte(points), reading: true}
	for range f.Draws.Total() {
		var x []float64
		if numbers.numbers(&x, len(f.Centre)); numbers.err == nil {
			f.Points = append(f.Points, x)
		}
	}
	return numbers.end()
}

const (
	magic   = "kelvin export\r\n\x00"
	version = 3
	parts   = 5 // of version 1, and two more of each later one
	head    = len(magic) + 4 + 8
	maxBody = 1 << 31
)

// ErrFile is what errors of a file that is damaged, cut or of another kind wrap.
var ErrFile = errors.New("no exported model, or a damaged one")

func damaged(format string, args ...any) error {
	return fmt.Errorf("portable: "+format+": %w", append(args, ErrFile)...)
}

// Write writes a file.
func (f *File) Write(w io.Writer) error {
	if w == nil || f.Density == nil || f.Named == nil {
		return errors.New("portable: a file needs plans, and something to write to")
	}
	numbers := f.pack()
	about, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("portable: %w", err)
	}
	body := &codec{}
	all, form := append([]string{string(about)}, encoded(f.Predictive, f.Density, f.Named, f.Pointwise)...), uint32(1)
	if f.Predictive != nil || f.Draws != nil {
		form = 2
		if f.Predictive == nil {
			all = append(all, "")
		}
		all = append(all, string(numbers))
	}
	if f.Likelihood != nil && f.Draws != nil {
		form = 3
		all = append(all, f.packLikelihood()...)
	}
	for _, p := range all {
		body.text(&p)
	}
	if len(body.b) > maxBody {
		return fmt.Errorf("portable: the model has %d bytes, and a file takes %d", len(body.b), maxBody)
	}
	out := binary.LittleEndian.AppendUint32([]byte(magic), form)
	out = append(binary.LittleEndian.AppendUint64(out, uint64(len(body.b))), body.b...)
	sum := sha256.Sum256(out)
	_, err = w.Write(append(out, sum[:]...))
	return err
}

// Read reads a file to its end. It takes at most twenty times the memory of what there is to read, and 512 MB.
func Read(r io.Reader) (*File, error) {
	if r == nil {
		return nil, damaged("the reader is nil")
	}
	b := make([]byte, head)
	if _, err := io.ReadFull(r, b); err != nil || string(b[:len(magic)]) != magic {
		return nil, damaged("the file does not begin as an export does")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v < 1 || v > version {
		return nil, damaged("the file has version %d of the format, and this program reads 1 to %d", v, version)
	}
	n := binary.LittleEndian.Uint64(b[len(magic)+4:])
	if n > maxBody {
		return nil, damaged("the file says that it has %d bytes", n)
	}
	rest, err := io.ReadAll(io.LimitReader(r, int64(n)+sha256.Size+1))
	if err != nil {
		return nil, fmt.Errorf("portable: %w", err)
	}
	if len(rest) != int(n)+sha256.Size {
		return nil, damaged("the file has not the length that it says, %d bytes", n)
	}
	h := sha256.New()
	h.Write(b)
	h.Write(rest[:n])
	if !bytes.Equal(h.Sum(nil), rest[n:]) {
		return nil, damaged("the checksum is not that of the file")
	}
	f, err := readBody(rest[:n])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrFile)
	}
	f.Sum = [sha256.Size]byte(rest[n:])
	return f, nil
}

// readBody reads the parts.
func readBody(b []byte) (*File, error) {
	var all []string
	c := &codec{b: b, reading: true}
	for n := parts; len(all) < n && c.err == nil; {
		var part string
		c.text(&part)
		all = append(all, part)
		if len(all) == n && len(c.b) > 0 && n < parts+4 {
			n += 2
		}
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	f := &File{}
	if err := json.Unmarshal([]byte(all[0]), f); err != nil {
		return nil, fmt.Errorf("portable: the description: %w", err)
	}
	plans, p, err := decoded(all[1:min(len(all), parts+1)], 3)
	if err != nil {
		return nil, err
	}
	if f.Density, f.Named, f.Pointwise = plans[0], plans[1], plans[2]; f.Density == nil || f.Named == nil {
		return nil, errCut
	}
	f.Predictive = p
	if len(all) > parts {
		err = f.unpack(all[parts+1])
	} else if f.Drawn != nil {
		err = errCut
	}
	if err == nil && len(all) > parts+2 {
		err = f.unpackLikelihood(all[parts+2], all[parts+3])
	}
	if err != nil {
		return nil, err
	}
	return f, f.check()
}

// mostUpdated is how many variables an update moves at most.
const mostUpdated = 256

// Update adds what an update needs: the likelihood of rows, and the draws on unconstrained space. Where it is an error
// the file says so and has none.
func (f *File) Update(likelihood *Prediction, points *draws.Draws, err error) {
	if err == nil {
		err = f.updates(likelihood)
	}
	if d := len(f.Centre); err == nil && d > mostUpdated {
		err = fmt.Errorf("the model has %d variables, and an update moves at most %d", d, mostUpdated)
	}
	if err != nil {
		f.Likelihood, f.Points, f.NoUpdate = nil, nil, err.Error()
		return
	}
	f.Likelihood, f.Points, f.NoUpdate = likelihood, nil, ""
	for chain := range points.Chains() {
		for k := range points.Len(chain) {
			f.Points = append(f.Points, points.Row(chain, k))
		}
	}
}

// updates makes sure that what an update reads of a draw, and what it gives back as one, are named values.
func (f *File) updates(likelihood *Prediction) error {
	named, err := f.Named.Sites()
	if err != nil {
		return err
	}
	for _, s := range append(f.Draws.Sites(), likelihood.Given...) {
		same := func(n draws.Site) bool { return n.Name == s.Name && slices.Equal(n.Shape, s.Shape) }
		if !slices.ContainsFunc(named, same) {
			return fmt.Errorf("the model makes no %q of shape %v, which the draws have", s.Name, s.Shape)
		}
	}
	return nil
}

// check makes sure that the parts belong together.
func (f *File) check() error {
	d, err := draws.New(f.Sites, nil, 1)
	if err != nil {
		return fmt.Errorf("portable: %w", err)
	}
	if len(f.Centre) != d.Dim() || len(f.Radius) != d.Dim() {
		return fmt.Errorf("portable: %d and %d numbers of a start of %d parameters", len(f.Centre), len(f.Radius), d.Dim())
	}
	for _, p := range []*Plan{f.Density, f.Named, f.Pointwise} {
		if p != nil && (p.plan.Dim != d.Dim() || p == f.Density && len(p.plan.Outputs) > 0) {
			return errors.New("portable: the plans are not those of the description")
		}
	}
	if len(f.Points) == 0 {
		return nil
	}
	return f.updates(f.Likelihood)
}
