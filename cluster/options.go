package cluster

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
)

// ErrRefused is a task that a worker does not run, because it is not the same program.
var ErrRefused = errors.New("refused")

const optionsName = "cluster.Options"

// Options say how a run goes. Of [infer.Options], those that are plain values travel: Chains, Warmup, Draws, Thin,
// Seed, FirstChain, Group, Cycles, Discard, Native and Checkpoint.Every. Functions and tensors cannot, and are errors.
//
// A task is a group of chains. The draws are those of [infer.Sample] with the same Group, bit for bit; here the default
// Group is 1, so that every chain is a task.
type Options struct {
	infer.Options
	Model  string // the name that the program's model is registered by; required
	Method string // the name of the method in the model; "" where no other of its methods is like it

	// URL is the NATS server's, with JetStream; "" starts one in this process.
	URL string
	// NATS are options of the connection: TLS, credentials.
	NATS []nats.Option
	// Workers run in this process: default 1 without a URL, else none.
	Workers int
	// Folder holds the files of the server in this process; "" is a temporary folder, removed at the end.
	Folder string
	// MaxBytes is the most that one object may have: the data, a task's draws; default 1 GiB.
	MaxBytes int64
	// Progress is told where the run stands; nil draws a line on the standard error stream where that is a terminal.
	Progress func(Progress)
}

// resolved fills in the defaults and checks the fields.
func (o Options) resolved(m infer.Method) (Options, error) {
	for _, f := range []struct {
		name  string
		given bool
		why   string
	}{
		{"Start", o.Start.Flat != nil, "tensors of the options do not travel: let the program start"},
		{"Batches", o.Batches != nil, "functions do not travel: give cluster.Model.Batches"},
		{"Until", o.Until != nil, "functions do not travel"},
		{"Observer", o.Observer != nil, "functions do not travel: use Progress"},
		{"Save", o.Save != nil, "functions do not travel"},
		{"Average", o.Average, "averages are part of infer.Run alone"},
	} {
		if f.given {
			return o, &infer.FieldError{Type: optionsName, Field: f.name, Value: "given", Allowed: "it must be unset: " + f.why}
		}
	}
	if d, ok := m.(infer.Defaulter); ok && o.Chains == 0 {
		o.Chains = d.Defaults().Chains
	}
	if o.Chains == 0 {
		o.Chains = 4
	}
	if o.Group == 0 {
		o.Group = 1
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Workers == 0 && o.URL == "" {
		o.Workers = 1
	}
	for _, f := range []struct {
		name string
		v    int64
	}{{"Chains", int64(o.Chains)}, {"Group", int64(o.Group)}, {"MaxBytes", o.MaxBytes}, {"Workers", int64(o.Workers + 1)}} {
		if f.v < 1 {
			return o, &infer.FieldError{Type: optionsName, Field: f.name, Value: f.v, Allowed: "it must not be negative"}
		}
	}
	if tasks := (o.Chains + o.Group - 1) / o.Group; tasks > maxTasks {
		return o, &infer.FieldError{Type: optionsName, Field: "Group", Value: o.Group,
			Allowed: fmt.Sprintf("that makes %d tasks: there may be %d", tasks, maxTasks)}
	}
	return o, nil
}

// maxTasks bounds what a server holds of one job.
const maxTasks = 100_000

// TaskError is a task that was tried three times in vain; the chains of the others are in the draws.
type TaskError struct {
	Task  int    // its number
	First uint64 // its first chain
	Tries int
	Text  string // the last error
}

// Error names the chains and the error.
func (e *TaskError) Error() string {
	return fmt.Sprintf("task %d, from chain %d on, failed %d times: %s", e.Task, e.First, e.Tries, e.Text)
}

// Progress is where the tasks of a run stand.
type Progress struct {
	Tasks, Done, Failed int
	Workers             int      // that have begun a task
	Redelivered         int      // tasks begun again, after an error or a death
	Updates             int64    // covered by checkpoints and results, as last told
	Refused             []string // what workers said that refuse the job
}

// String is the state in one line.
func (p Progress) String() string {
	s := fmt.Sprintf("cluster: %d of %d tasks, %d workers, %d redelivered, %d updates", p.Done, p.Tasks, p.Workers,
		p.Redelivered, p.Updates)
	if p.Failed > 0 {
		s += fmt.Sprintf(", %d failed", p.Failed)
	}
	if len(p.Refused) > 0 {
		s += ", refused: " + p.Refused[0]
	}
	return s
}
