package portable

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/philox"
)

// The numbers of a stream are those of torch.Source, in the same order: what is drawn here of (seed, chain) at a
// position is what libtorch draws there. Algorithms and their sources are in kelvin_random.cpp and kelvin_sample.cpp.

// numbers fills out with uniform or normal numbers of a stream from a position on. Two are made at each.
func numbers(normal bool, seed, chain, position uint64, out []float64) {
	for i := 0; i < len(out); i += 2 {
		p := position + uint64(i/2)
		w0, w1, w2, w3 := philox.Words(uint32(p), uint32(p>>32), uint32(chain), uint32(chain>>32), uint32(seed),
			uint32(seed>>32))
		a, b := philox.Unit(w0, w1), philox.Unit(w2, w3)
		if normal {
			r := math.Sqrt(-2 * math.Log(a))
			sin, cos := math.Sincos(2 * math.Pi * b)
			a, b = r*cos, r*sin
		}
		if out[i] = a; i+1 < len(out) {
			out[i+1] = b
		}
	}
}

// seedAt is the seed of a draw whose parameters are numbers of the model, at a position of a stream.
func seedAt(seed, chain, position uint64) uint64 {
	z := seed + 0x9e3779b97f4a7c15*(chain+1) + 0xd1342543de82ef95*(position+1)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// engine is the generator of one element of such a draw.
type engine struct{ seed, element, uniforms uint64 }

// uniform has two of the four words of a counter.
func (e *engine) uniform() float64 {
	p := e.uniforms / 2
	w0, w1, w2, w3 := philox.Words(uint32(p), uint32(p>>32), uint32(e.element), uint32(e.element>>32), uint32(e.seed),
		uint32(e.seed>>32))
	if e.uniforms++; e.uniforms%2 == 0 {
		return philox.Unit(w2, w3)
	}
	return philox.Unit(w0, w1)
}

func (e *engine) normal() float64 {
	r := math.Sqrt(-2 * math.Log(e.uniform()))
	return r * math.Cos(2*math.Pi*e.uniform())
}

// logGamma is the logarithm of a gamma number of shape alpha (Marsaglia and Tsang 2000); below 1 it is one of
// alpha + 1, times u^(1/alpha).
func (e *engine) logGamma(alpha float64) float64 {
	if !(alpha > 0) || math.IsInf(alpha, 0) {
		return math.NaN()
	}
	least := alpha
	if alpha < 1 {
		least++
	}
	d := least - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := e.normal()
		t := 1 + c*x
		if t <= 0 {
			continue
		}
		v := t * t * t
		if math.Log(e.uniform()) >= 0.5*x*x+d*(1-v+3*math.Log(t)) {
			continue
		}
		log := math.Log(d * v)
		if alpha < 1 {
			log += math.Log(e.uniform()) / alpha
		}
		return log
	}
}

// stirling is log k! less Stirling's approximation, and deviance x log(x/mu) + mu - x (Loader 2000).
func stirling(k float64) float64 {
	if k < 16 {
		v, _ := math.Lgamma(k + 1)
		return v - (k+0.5)*math.Log(k) + k - 0.91893853320467274178
	}
	r := 1 / (k * k)
	return (1.0/12 - r*(1.0/360-r*(1.0/1260-r/1680))) / k
}

func deviance(x, mu float64) float64 {
	if x == 0 {
		return mu
	}
	t := (x - mu) / mu
	return mu * ((1+t)*math.Log1p(t) - t)
}

func poissonLog(k, rate float64) float64 {
	if k == 0 {
		return -rate
	}
	return -stirling(k) - deviance(k, rate) - 0.5*math.Log(2*math.Pi*k)
}

// poisson inverts the distribution function for small rates; above, it is transformed rejection (Hörmann 1993, PTRS).
func (e *engine) poisson(rate float64) float64 {
	switch {
	case !(rate >= 0) || math.IsInf(rate, 0):
		return math.NaN()
	case rate < 10:
		u, p, k := e.uniform(), math.Exp(-rate), 0.0
		for u > p && k < 200 {
			u -= p
			k++
			p *= rate / k
		}
		return k
	}
	b := 0.931 + 2.53*math.Sqrt(rate)
	a := -0.059 + 0.02483*b
	inverse, most := 1.1239+1.1328/(b-3.4), 0.9277-3.6224/(b-2)
	for {
		u := e.uniform() - 0.5
		v := e.uniform()
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + rate + 0.43)
		switch {
		case us >= 0.07 && v <= most:
			return k
		case k < 0 || us < 0.013 && v > us:
		case math.Log(v*inverse/(a/(us*us)+b)) <= poissonLog(k, rate):
			return k
		}
	}
}

func binomialLog(k, n, p float64) float64 {
	switch k {
	case 0:
		return n * math.Log1p(-p)
	case n:
		return n * math.Log(p)
	}
	return stirling(n) - stirling(k) - stirling(n-k) - deviance(k, n*p) - deviance(n-k, n*(1-p)) +
		0.5*math.Log(n/(2*math.Pi*k*(n-k)))
}

// binomial inverts the distribution function where few successes are expected; otherwise it is transformed rejection
// (Hörmann 1993, BTRS).
func (e *engine) binomial(n, p float64) float64 {
	switch {
	case !(n >= 0) || math.IsInf(n, 0) || !(p >= 0 && p <= 1):
		return math.NaN()
	case p > 0.5:
		return n - e.binomial(n, 1-p)
	case n*p < 10:
		u, f, k := e.uniform(), math.Exp(n*math.Log1p(-p)), 0.0
		for u > f && k < n && k < 300 {
			u -= f
			f *= (n - k) / (k + 1) * (p / (1 - p))
			k++
		}
		return k
	}
	spread := math.Sqrt(n * p * (1 - p))
	b := 1.15 + 2.53*spread
	a := -0.0873 + 0.0248*b + 0.01*p
	most, alpha := 0.92-4.2/b, (2.83+5.1/b)*spread
	mode := binomialLog(math.Floor((n+1)*p), n, p)
	for {
		u := e.uniform() - 0.5
		v := e.uniform()
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + n*p + 0.5)
		switch {
		case k < 0 || k > n:
		case us >= 0.07 && v <= most, math.Log(v*alpha/(a/(us*us)+b)) <= binomialLog(k, n, p)-mode:
			return k
		}
	}
}

// vonMises is rejection from a wrapped Cauchy (Best and Fisher 1979), around 0.
func (e *engine) vonMises(k float64) float64 {
	switch {
	case !(k >= 0) || math.IsInf(k, 0):
		return math.NaN()
	case k < 1e-8:
		return math.Pi * (2*e.uniform() - 1)
	case k > 1e8:
		return e.normal() / math.Sqrt(k)
	}
	tau := 1 + math.Sqrt(1+4*k*k)
	rho := (tau - math.Sqrt(2*tau)) / (2 * k)
	r1 := (1 - rho) * (1 - rho) / (2 * rho)
	if k < 1e-5 {
		r1 = 1/k + k - 1
	}
	for {
		z := math.Sin(math.Pi * (e.uniform() - 0.5))
		w := r1 * (1 - z) / (r1 + 1 + z)
		c := k * (r1 + w)
		u := e.uniform()
		if !(c*(2-c) > u || math.Log(c/u)+1 >= c) {
			continue
		}
		sign := 2.0
		if e.uniform() < 0.5 {
			sign = -2
		}
		return sign * math.Asin(math.Sqrt(min(1, w/2)))
	}
}

// categories is a multinomial draw into out: category after category, a binomial number of those that are left.
func (e *engine) categories(count float64, weights, out []float64) {
	rest := 0.0
	for j := len(weights) - 1; j >= 0; j-- {
		rest += weights[j]
		out[j] = rest
	}
	for j, w := range weights {
		here := count
		if j < len(weights)-1 {
			here = 0
			if count != 0 {
				here = e.binomial(count, min(1, w/out[j]))
			}
		}
		out[j] = here
		count -= here
	}
}
