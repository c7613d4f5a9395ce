//go:build slow

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every exact method has uniform ranks on every right model, and the mistake is caught whatever the method: 200
// replications. A finding of a right method has probability 0.01; the seeds are fixed.
func TestAll(t *testing.T) {
	for _, p := range problems {
		for _, w := range ways {
			if w.biased {
				continue
			}
			result, err := calibrate(context.Background(), p, w.method, 200, "")
			require.NoError(t, err)
			report, err := result.Diagnose()
			require.NoError(t, err)
			require.Equal(t, p.wrong, len(report.Findings) > 0, "%s, %s: %s", p.name, w.name, report)
		}
	}
}
