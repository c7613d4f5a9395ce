package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What go test prints is passed on, the five slowest packages follow, and a failure is an error.
func TestSlowest(t *testing.T) {
	passed := "ok  \ta\t0.5s\nok  \tb\t12.25s\nok  \tc\t(cached)\n?   \td\t[no test files]\nok  \te\t1.5s\n" +
		"ok  \tf\t0.1s\nok  \tg\t3s\nok  \th\t2s\tcoverage: 3%\n"
	var out strings.Builder
	require.NoError(t, slowest(strings.NewReader(passed), &out))
	require.Equal(t, passed+"    12.2 s  b\n     3.0 s  g\n     2.0 s  h\n     1.5 s  e\n     0.5 s  a\n", out.String())
	for _, failed := range []string{"--- FAIL: TestX\nFAIL\nFAIL\ta\t0.5s\nFAIL\n", "FAIL\ta [build failed]\n"} {
		out.Reset()
		require.Error(t, slowest(strings.NewReader(passed+failed), &out))
	}
}
