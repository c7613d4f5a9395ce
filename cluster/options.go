package cluster

import (
	"cmp"
	"io"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
)

// Options say how a run goes, and where. Of infer.Options these must be nil, because they are functions of this process
// or of its disk: Until, and of Checkpoint all but Every and Model. Average must be false: only draws come back.
// Observer has no effect: see Progress.
//
// Save gets the draws of a task when the task has ended, in blocks of about 1 MiB whatever SaveEvery says, and run is
// empty. The goroutine of [Sample] calls it; chains come in the order in which their tasks end. With Discard too, Save
// alone has the draws: they are not returned, and this process never holds more than a block of them.
type Options struct {
	infer.Options

	Job    string // the name that the workers have registered; required
	Params any    // of the job, made JSON; nil for none

	URL  string        // of the NATS server or servers; "" starts one in this process
	NATS []nats.Option // TLS, credentials and whatever else the connection needs
	// Dir is where a server of this process keeps its files; "" is a temporary folder that is removed at the end.
	Dir string
	// Workers is how many tasks run at once in this process. The default is 1 where the server is this process's own,
	// and otherwise none; infer.None for none.
	Workers int

	Tries    int           // of a task that fails; default 3
	Crashes  int           // of workers over one task without a checkpoint in between; default 10
	AckWait  time.Duration // a task without a heartbeat for so long goes to another worker; default 5 s
	Replicas int           // copies of streams that a cluster of servers keeps; default 1
	// MaxObject limits the bytes of the data, of a file of a checkpoint and of a task's draws; default 1 GiB. The server
	// limits messages.
	MaxObject int
	// Mixed lets workers of another kind of processor, libtorch or number of threads take tasks. The draws then equal
	// those of a local run in law, not in every bit, and a note says so.
	Mixed bool
	// Progress gets one line about all workers, again and again; nil is the standard error stream where that is a
	// terminal.
	Progress io.Writer
}

const optionsName = "cluster.Options"

// resolved fills in the defaults and checks the fields.
func (o Options) resolved() (Options, error) {
	bad := func(field string, value any, allowed string) (Options, error) {
		return o, &infer.FieldError{Type: optionsName, Field: field, Value: value, Allowed: allowed}
	}
	switch {
	case o.Job == "":
		return bad("Job", `""`, "the name of a job that the workers have registered is required")
	case o.Until != nil:
		return bad("Until", "given", "it must be nil: a function does not travel to workers")
	case o.Checkpoint != nil && (o.Checkpoint.Dir != "" || o.Checkpoint.Resume || o.Checkpoint.Saved != nil):
		return bad("Checkpoint", "given", "only Every and Model may be set: checkpoints are kept by the server")
	case o.Checkpoint != nil && o.Checkpoint.Every < 0:
		return bad("Checkpoint.Every", o.Checkpoint.Every, "it must be at least 0")
	case o.Average:
		return bad("Average", true, "it must be false: averages do not come back from workers")
	case o.Workers < infer.None:
		return bad("Workers", o.Workers, "it must be at least 1, 0 for the default, or infer.None")
	case o.AckWait < 0:
		return bad("AckWait", o.AckWait, "it must be positive, or 0 for the default")
	case o.MaxObject < 0:
		return bad("MaxObject", o.MaxObject, "it must be positive, or 0 for the default")
	}
	for _, n := range []struct {
		field string
		value int
	}{{"Chains", o.Chains}, {"Group", o.Group}, {"Tries", o.Tries}, {"Crashes", o.Crashes}, {"Replicas", o.Replicas}} {
		if n.value < 0 {
			return bad(n.field, n.value, "it must be at least 1, or 0 for the default")
		}
	}
	if o.Workers == 0 && o.URL == "" {
		o.Workers = 1
	}
	o.Workers = max(o.Workers, 0)
	o.Tries = cmp.Or(o.Tries, 3)
	o.Crashes = cmp.Or(o.Crashes, 10)
	o.AckWait = cmp.Or(o.AckWait, defaultAckWait)
	o.MaxObject = cmp.Or(o.MaxObject, 1<<30)
	o.Replicas = max(o.Replicas, 1)
	return o, nil
}

const defaultAckWait = 5 * time.Second
