package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// station is a place where messages queue, first come first served. A message passes them in this order.
type station int

const (
	network station = iota
	server
	disk
	client
	stations
)

func (s station) String() string { return [...]string{"network", "server", "disk", "client"}[s] }

// class is a kind of message, which each worker sends again and again.
type class struct {
	name   string
	period float64           // s between two messages of a worker
	demand [stations]float64 // s of service at each station
}

// load is the share of a station's time that one worker takes.
func load(classes []class, s station) float64 {
	sum := 0.0
	for _, c := range classes {
		sum += c.demand[s] / c.period
	}
	return sum
}

// system is a cluster to simulate.
type system struct {
	workers int
	classes []class
	seconds float64 // simulated; the first fifth is not counted
	poisson bool    // exponential times between messages; else they are periodic, with random phases
	seed    uint64
}

// outcome is what a simulation saw.
type outcome struct {
	busy   [stations]float64 // share of the time
	delays [][]float64       // s from sending to the end of service, of each class, in the order of their ends
}

// quantile of the delays of a class; 0 for a class without tasks.
func (o outcome) quantile(class int, p float64) float64 {
	sorted := slices.Sorted(slices.Values(o.delays[class]))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(p*float64(len(sorted)-1))]
}

// message is the next event of a message: it arrives at a station, or, at -1, is sent.
type message struct {
	at, sent float64
	class    int32
	station  station
}

type agenda []message

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(message)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// run is a discrete-event simulation with fixed service times.
func (s system) run() outcome {
	random := rand.New(rand.NewPCG(s.seed, 1))
	o := outcome{delays: make([][]float64, len(s.classes))}
	var next agenda
	for i, c := range s.classes {
		for range s.workers {
			next = append(next, message{at: random.Float64() * c.period, class: int32(i), station: -1})
		}
	}
	heap.Init(&next)
	var free [stations]float64
	from := s.seconds / 5
	for next.Len() > 0 && next[0].at < s.seconds {
		m := next[0]
		c := &s.classes[m.class]
		if m.station < 0 {
			later := m
			if s.poisson {
				later.at += random.ExpFloat64() * c.period
			} else {
				later.at += c.period
			}
			next[0] = later
			heap.Fix(&next, 0)
			m.sent = m.at
			m.station = 0
		} else {
			heap.Pop(&next)
		}
		for m.station < stations && c.demand[m.station] == 0 {
			m.station++
		}
		if m.station == stations {
			if m.sent >= from {
				o.delays[m.class] = append(o.delays[m.class], m.at-m.sent)
			}
			continue
		}
		begin := max(m.at, free[m.station])
		end := begin + c.demand[m.station]
		free[m.station] = end
		o.busy[m.station] += max(0, min(end, s.seconds)-max(begin, from)) / (s.seconds - from)
		m.at = end
		m.station++
		heap.Push(&next, m)
	}
	return o
}
