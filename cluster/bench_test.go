package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// BenchmarkTasks is the throughput of a thousand tasks of about 0.1 s on two workers of this process, as a share of the
// one of infer.Sample, which has as many chains at a time as there are processors.
func BenchmarkTasks(b *testing.B) {
	program, err := ppl.Compile(schools, schoolsData(28))
	require.NoError(b, err)
	each := func(tasks int, sample func(o infer.Options) error) float64 {
		began := time.Now()
		require.NoError(b, sample(infer.Options{Chains: tasks, Warmup: 48_000, Draws: 1, Seed: 1,
			Observer: infer.Silent}))
		return time.Since(began).Seconds() / float64(tasks)
	}
	for b.Loop() {
		local := each(200, func(o infer.Options) error {
			_, err := infer.Sample(b.Context(), program, hmc.NUTS{}, o)
			return err
		})
		spread := each(1000, func(o infer.Options) error {
			_, err := cluster.Sample(b.Context(), program, hmc.NUTS{}, cluster.Options{Options: o, Job: "schools",
				Workers: 2})
			return err
		})
		b.ReportMetric(1e3*local, "local-ms/task")
		b.ReportMetric(1e3*spread, "ms/task")
		b.ReportMetric(local/spread, "of-local")
	}
}
