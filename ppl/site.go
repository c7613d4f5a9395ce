package ppl

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Kind is what a site is.
type Kind int

// The kinds of sites.
const (
	KindSample        Kind = iota // a random variable, latent or observed
	KindFactor                    // a term of the log density
	KindDeterministic             // a value to be recorded
	KindParam                     // a value to be optimised, without a prior
	KindData                      // a tensor of the batch
)

// Site is one statement of a model as it ran: what handlers see and change.
type Site struct {
	Kind     Kind              // what the site is
	Name     string            // as the model gives it
	Dist     dist.Distribution // of samples
	Value    torch.Tensor      // nil until somebody gives it one
	Observed bool              // the value is data, or was conditioned on
	Plates   []Plate           // outermost first
	Scale    float64           // multiplies the log density; plates that are subsampled and Scale set it
	Mask     torch.Tensor      // of booleans: only where it is true does the density count; nil is everywhere
	Init     torch.Tensor      // of params: the value to start from

	// Jacobian is what is added to the log density of a latent value that was computed from an unconstrained one.
	Jacobian torch.Tensor

	ctx    *Ctx              // where it was declared
	given  dist.Distribution // Dist before the plates expanded it
	weight float64           // the plates' part of Scale
	before []plate           // the plates as they were before this site
	shared torch.Tensor      // of a factor in plates: its value before the plates expanded it
	logp   torch.Tensor      // LogProb, once a trace has computed it

	density *density // of a factor that a Go function computes: its value is nil until it is needed

	shaped torch.Tensor // the value whose shape was asked for last, and that shape: asking costs a call
	shape  []int

	declared bool   // by Observe: the value is data, and a prediction draws it anew
	instead  string // of the site that a reparameterisation put in another's place: that one's name
	by       string // the handler that observes a latent variable
	redrawn  bool   // Observe's value was forgotten, to be drawn anew
	written  bool   // a reparameterisation computes the value

	summed   *summed // of a site that depends on variables that are summed out
	anyPlate bool    // a discrete variable that is drawn anew with each prediction

	stop   bool // no outer handler sees the site
	hidden bool // the site contributes nothing to the log density
}

// valueShape is the shape of the value.
func (s *Site) valueShape() []int {
	if s.shaped != s.Value {
		s.shaped, s.shape = s.Value, shapeOf(s.Value)
	}
	return s.shape
}

// Stop keeps the site from handlers further out.
func (s *Site) Stop() { s.stop = true }

// Hide takes the site out of the log density.
func (s *Site) Hide() { s.hidden = true }

// plateNames are the names of the plates, outermost first.
func (s *Site) plateNames() []string {
	names := make([]string, len(s.Plates))
	for i, p := range s.Plates {
		names[i] = p.Name
	}
	return names
}

// fail panics with the site's error.
func (s *Site) fail(format string, args ...any) { panic(s.mistake(format, args...)) }

// mistake is an error that names the site.
func (s *Site) mistake(format string, args ...any) *SiteError {
	e := &SiteError{Site: s.Name, Plates: s.plateNames(), Message: fmt.Sprintf(format, args...)}
	if s.Dist != nil {
		e.Distribution = s.Dist.Name()
	}
	for _, a := range args {
		if cause, ok := a.(error); ok {
			e.Cause = cause
		}
	}
	return e
}

// SiteError is a mistake at a site of a model.
type SiteError struct {
	Site         string // name of the site; empty when the mistake is the model's
	Plates       []string
	Distribution string
	Message      string
	Cause        error // the error behind it; nil where there is none
}

// Error names the site, its plates and distribution, and what is wrong.
func (e *SiteError) Error() string {
	var b strings.Builder
	b.WriteString("model")
	if e.Site != "" {
		fmt.Fprintf(&b, ", site %q", e.Site)
	}
	if len(e.Plates) > 0 {
		fmt.Fprintf(&b, " in plate %s", strings.Join(e.Plates, ", "))
	}
	if e.Distribution != "" {
		fmt.Fprintf(&b, " (%s)", e.Distribution)
	}
	b.WriteString(": " + e.Message)
	return b.String()
}

// Unwrap is the cause.
func (e *SiteError) Unwrap() error { return e.Cause }

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *SiteError) RecoverAsError() {}

// Counts says whether the site is a term of the log density.
func (s *Site) Counts() bool { return s.counts() }

// LogProbs is the log density of each repetition, of the shape of the site's batch, without Scale and Jacobian. A mask
// has made it 0 where it does not count.
func (s *Site) LogProbs() torch.Tensor { return s.elementwise() }

// Prior says whether the site is a term of the prior: a latent variable, or a sum over discrete ones without data.
func (s *Site) Prior() bool {
	return s.counts() && (!s.Observed || s.summed != nil && s.summed.prior)
}
