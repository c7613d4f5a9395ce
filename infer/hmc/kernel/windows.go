package kernel

// Schedule says when a warm-up adapts what, as Stan does (reference manual, "HMC algorithm parameters"): a first buffer in
// which only the step size adapts, windows of doubling length whose draws make the metric, and a last buffer for the step
// size again.
type Schedule struct {
	Warmup int   // transitions
	Start  int   // first transition of the first window
	Ends   []int // last transition of each window, the transitions counted from 0
}

// Windows makes the schedule. The defaults of Stan are initBuffer 75, termBuffer 50, baseWindow 25. Each window is twice as
// long as the one before; after the first, one that would leave too little room for its successor is stretched to the end. When the three do
// not fit, the buffers are 15 % and 10 % of the warm-up, rounded down, and all between is one window. Under 20 transitions
// there is no window.
func Windows(warmup, initBuffer, termBuffer, baseWindow int) Schedule {
	s := Schedule{Warmup: warmup, Start: warmup}
	if warmup < 20 || baseWindow < 1 {
		return s
	}
	if initBuffer+termBuffer+baseWindow > warmup {
		initBuffer, termBuffer = warmup*15/100, warmup/10
		baseWindow = warmup - initBuffer - termBuffer
	}
	s.Start = initBuffer
	last := warmup - termBuffer - 1
	begin, size := initBuffer, baseWindow
	for begin <= last {
		end := begin + size - 1
		if len(s.Ends) > 0 && end+2*size > last { // the next window does not fit
			end = last
		}
		s.Ends = append(s.Ends, end)
		begin, size = end+1, 2*size
	}
	return s
}

// In reports whether transition i is in a window.
func (s Schedule) In(i int) bool {
	return len(s.Ends) > 0 && i >= s.Start && i <= s.Ends[len(s.Ends)-1]
}

// End reports whether transition i is the last of a window.
func (s Schedule) End(i int) bool {
	for _, e := range s.Ends {
		if e == i {
			return true
		}
	}
	return false
}
