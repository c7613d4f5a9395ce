package main

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The mean time in an M/D/1 queue is s + ρs/(2(1−ρ)) (Pollaczek and Khinchine).
func TestQueue(t *testing.T) {
	for _, rho := range []float64{0.3, 0.8} {
		c := class{period: 1}
		c.demand[server] = rho
		o := system{workers: 1, classes: []class{c}, seconds: 400_000, poisson: true, seed: 3}.run()
		const batches = 40 // of 8000 s, far longer than the memory of the queue, s/(1−ρ)² = 20 s
		size, mean, square := len(o.delays[0])/batches, 0.0, 0.0
		for b := range batches {
			sum := 0.0
			for _, d := range o.delays[0][b*size : (b+1)*size] {
				sum += d / float64(size)
			}
			mean += sum / batches
			square += sum * sum / batches
		}
		se := math.Sqrt((square - mean*mean) / (batches - 1))
		want := rho + rho*rho/(2*(1-rho))
		require.InDelta(t, want, mean, 4*se)
		require.Less(t, se, 0.02*want, "else the comparison says nothing")
		// The number of arrivals in 320,000 s has the standard deviation of its root.
		require.InDelta(t, rho, o.busy[server], 4*rho/math.Sqrt(320_000))
	}
}

// Utilisation law: a station is busy for workers × demand / period of the time, up to 1. Where periods divide the
// counted time and nothing saturates, that is so but for the messages at its two ends.
func TestUtilisation(t *testing.T) {
	all := []class{
		{period: 0.2, demand: [stations]float64{1e-6, 20e-6, 0, 40e-6}},
		{period: 1, demand: [stations]float64{1e-6, 10e-6, 0, 0}},
		{period: 4, demand: [stations]float64{1e-4, 1e-3, 2e-3, 0}},
	}
	for s := range stations {
		limit := 1 / load(all, s)
		for _, share := range []float64{0.5, 0.9} {
			n := int(share * limit)
			only := make([]class, len(all)) // at this station alone, so that no other holds messages up
			for i, c := range all {
				only[i] = class{period: c.period}
				only[i].demand[s] = c.demand[s]
			}
			o := system{workers: n, classes: only, seconds: 20, seed: 5}.run()
			// What waits at an end is at most some hundred of the longest services.
			require.InDelta(t, float64(n)*load(all, s), o.busy[s], 100*2e-3/16, "%v", s)
		}
	}
	o := system{workers: int(1.5 / load(all, server)), classes: all, seconds: 20, seed: 5}.run()
	require.InDelta(t, 1, o.busy[server], 1e-9)
	// Messages come half as fast again as they are served: who is served at the end was sent at 2/3 of the time.
	require.InDelta(t, 20.0/3, o.quantile(1, 1), 0.2)
}

// The measurements are positive and a large message is not cheaper than a small one; the table has its rows.
func TestCommand(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-workers", "200", "-scale", "2", "-seconds", "2", "-beats", "4"}
	require.NoError(t, run(context.Background(), args, &out))
	require.Regexp(t, `server: busy \S+ of the time for one worker, saturates at [1-9]\d* workers`, out.String())
	require.Regexp(t, `(?m)^ +200 `, out.String())
	require.ErrorContains(t, run(context.Background(), []string{"-workers", "0"}, &out), "must be positive")
}
