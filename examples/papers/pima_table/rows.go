package main

// lengths are how long the runs are.
type lengths struct {
	seeds                 int
	draws                 int // kept of each run, and in each ensemble of the parallel chains
	nutsWarmup            int // transitions
	warmup, thin          int // of serial SGHMC, in updates
	chains                int // parallel
	chainUpdates          int
	viUpdates             int
	ensembles             int // that the spread of the parallel row is of
	sharedRuns, sharedOne int // runs of parallel chains with shared batches, and chains of each; see [task.shared]
}

// published are the lengths of the table; quick ones are for tests.
var (
	published = lengths{seeds: 10, draws: 5000, nutsWarmup: 2000, warmup: 2000, thin: 5, chains: 10_000,
		chainUpdates: 2000, viUpdates: 8000,
		ensembles: 10, sharedRuns: 10, sharedOne: 5000}
	quick = lengths{seeds: 2, draws: 200, nutsWarmup: 200, warmup: 100, thin: 2, chains: 300, chainUpdates: 100,
		viUpdates: 300,
		ensembles: 2, sharedRuns: 2, sharedOne: 200}
)

// The settings of the table: SGHMC with σ = 1, from w = 0 at rest; Adam from mean 0 and standard deviations 1, with one
// sample and the landing stuck.
const (
	sghmcStep     = 1e-2
	sghmcFriction = 1.0
	adamRate      = 1e-3
	batchSize     = 32
)

// kind is how a row is computed.
type kind int

const (
	notRun kind = iota // no run of our own
	nuts
	variational
	serial
	parallel
)

// tableRow is a row of the table as it was published.
type tableRow struct {
	method  string
	kind    kind
	batch   int // 0: all data
	ksd, sd float64
	seconds float64 // of the parallel row: of one chain
	spread  float64 // of the seconds
}

// table is table 3 of Duffield et al. (2025): mean and spread of 10 runs.
var table = []tableRow{
	{method: "NUTS", kind: nuts, ksd: 2.680, sd: 0.001, seconds: 15.38, spread: 0.74},
	{method: "SGHMC (BlackJAX)", kind: notRun, ksd: 2.689, sd: 0.013, seconds: 5.29, spread: 0.74},
	{method: "VI", kind: variational, ksd: 2.623, sd: 0.001, seconds: 7.04, spread: 0.23},
	{method: "VI", kind: variational, batch: batchSize, ksd: 2.516, sd: 0.003, seconds: 6.52, spread: 0.22},
	{method: "SGHMC", kind: serial, ksd: 2.693, sd: 0.024, seconds: 14.37, spread: 0.31},
	{method: "SGHMC", kind: serial, batch: batchSize, ksd: 2.686, sd: 0.012, seconds: 13.73, spread: 0.38},
	{method: "Parallel SGHMC", kind: parallel, batch: batchSize, ksd: 2.690, sd: 0.001, seconds: 0.79, spread: 0.04},
}
