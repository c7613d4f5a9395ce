package gp

/*
#cgo CFLAGS: -O2 -std=gnu11
#include <stdlib.h>
#include "watch.h"

static void *kelvin_gp_watch_function(void) { return (void *)kelvin_gp_watch; }
static gp_watch *kelvin_gp_watch_new(long n) {
  gp_watch *w = calloc(1, sizeof(gp_watch));
  if (w) w->n = n;
  return w;
}
static long kelvin_gp_watch_all(gp_watch *w) { return w->all; }
static long kelvin_gp_watch_below(gp_watch *w) { return w->below; }
static long kelvin_gp_watch_alike(gp_watch *w) { return w->alike; }
static double kelvin_gp_watch_ratio(gp_watch *w) { return w->ratio; }
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/torch"
)

// watches count by number of inputs. They live as long as the process: compiled code has their addresses.
var watches struct {
	sync.Mutex
	of map[int]*C.gp_watch
}

// watched is a covariance, [n, n], of the kernel's k and noise. An evaluation in which the noise is below the jitter is
// counted.
func watched(k, noise torch.Tensor, jitter float64, covariance torch.Tensor) torch.Tensor {
	n := k.Shape()[0]
	watches.Lock()
	w := watches.of[n]
	if w == nil {
		if watches.of == nil {
			watches.of = map[int]*C.gp_watch{}
		}
		w = C.kelvin_gp_watch_new(C.long(n))
		watches.of[n] = w
	}
	watches.Unlock()
	if w == nil { // there is no memory
		return covariance
	}
	f := &foreign.Function{Call: C.kelvin_gp_watch_function(), Self: unsafe.Pointer(w), In: 2*int(n) + 1, Out: 1}
	variances := k.Diag()
	correlation := k.Sum().Div(variances.Sqrt().Sum().Square()) // of pairs, on average
	in := torch.Cat(0, variances.Mul(jitter), noise.Square().Expand(n), correlation.Unsqueeze(0))
	zero := torch.Must(f.Apply(in.T(), nil))
	return covariance.Add(torch.Of(zero).Squeeze(0))
}

// counts are sums over all watches.
type counts struct {
	all, below, alike int
	ratio             float64
}

func counted() (c counts) {
	watches.Lock()
	defer watches.Unlock()
	for _, w := range watches.of {
		c.all += int(C.kelvin_gp_watch_all(w))
		c.below += int(C.kelvin_gp_watch_below(w))
		c.alike += int(C.kelvin_gp_watch_alike(w))
		c.ratio += float64(C.kelvin_gp_watch_ratio(w))
	}
	return c
}

func (c counts) minus(b counts) counts {
	return counts{c.all - b.all, c.below - b.below, c.alike - b.alike, c.ratio - b.ratio}
}

func init() {
	foreign.AddCounter(func() foreign.Count {
		before := counted()
		return foreign.Count{
			Notes: func() []draws.Note { return counted().minus(before).notes() },
			Aside: func(f func()) {
				so := counted().minus(before)
				f()
				before = counted().minus(so)
			},
		}
	})
}

// belowJitter is the kind of the note of a run whose noise is below the jitter.
const belowJitter = "gp_jitter"

// belowShare is the share of evaluations below the jitter from which on figures can be wrong: warm-up has some.
const belowShare = 0.01

// notes say how large the jitter is beside the noise, and what to do.
func (c counts) notes() []draws.Note {
	if float64(c.below) <= belowShare*float64(c.all) {
		return nil
	}
	advice := "Give the noise a prior that avoids 0, measure the data in larger units of their noise, or set " +
		"gp.Process.Jitter to what the noise is at least."
	if 2*c.alike > c.below {
		advice = "All inputs are nearly the same to the kernel: they are far from the Center of a gp.Linear, or close to " +
			"each other beside the lengths. Subtract their mean, and divide by their spread."
	}
	return []draws.Note{{Kind: belowJitter, Serious: true, Advice: advice, Text: fmt.Sprintf("In %d of %d evaluations "+
		"of a Gaussian process the jitter against rounding was larger than the noise, on average %.3g times its variance.",
		c.below, c.all, c.ratio/float64(c.below))}}
}
