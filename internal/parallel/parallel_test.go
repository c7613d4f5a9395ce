package parallel

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A panic comes back to Wait, with its value, once all functions have ended; without one Wait just waits.
func TestGroup(t *testing.T) {
	var g Group
	g.Wait()
	var ran atomic.Int64
	boom := errors.New("boom")
	for i := range 20 {
		g.Go(func() {
			defer ran.Add(1)
			if i == 7 {
				panic(boom)
			}
		})
	}
	require.PanicsWithValue(t, boom, g.Wait)
	require.EqualValues(t, 20, ran.Load())
}
