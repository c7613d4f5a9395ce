package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// fields are the declarations in the data block of a Stan program.
var fields = regexp.MustCompile(`(?m)^  (?:array\[N\] )?(?:int|real|vector|matrix)(?:<[^>]*>)?(?:\[[^\]]*\])? (\w+);$`)

// Each formula compiles on its data, and its columns, less their means, are those that Stan gets; Stan's program
// declares what it is given and nothing else.
func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table, err := c.table()
			require.NoError(t, err)
			m, err := c.formula.Fit(table)
			require.NoError(t, err)
			of, err := c.stanData(table, m)
			require.NoError(t, err)
			x := transposed(of["X"].([][]float64), 0)
			require.Len(t, x, of["K"].(int))
			got, err := torch.ToSlice[float64](m.Batch()["x"])
			require.NoError(t, err)
			require.Len(t, got, len(x)*table.Len())
			for j, column := range x {
				mean := 0.0
				for _, v := range column {
					mean += v / float64(len(column))
				}
				for i, v := range column {
					require.InDelta(t, v-mean, got[i*len(x)+j], 1e-9*math.Max(1, math.Abs(v)), "row %d, column %d", i, j)
				}
			}
			declared(t, c, of)
			_, lines, err := c.program()
			require.NoError(t, err)
			require.Greater(t, lines, 25)
		})
	}
}

// declared says that a program's data block has names of the data.
func declared(t *testing.T, c regressionCase, of map[string]any) {
	t.Helper()
	text, _, err := c.program()
	require.NoError(t, err)
	_, block, ok := strings.Cut(text, "\ndata {\n")
	if !ok {
		_, block, ok = strings.Cut(text, "data {\n")
	}
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "}\ntransformed data")
	names := fields.FindAllStringSubmatch(block, -1)
	require.Len(t, names, strings.Count(block, "\n"), block)
	for _, name := range names {
		require.Contains(t, of, name[1])
	}
}

// The README names each file with its number of rows, the files are small, and a case uses each.
func TestData(t *testing.T) {
	readme, err := files.ReadFile("data/README.md")
	require.NoError(t, err)
	used, size := map[string]bool{}, 0
	for _, c := range cases {
		used[c.source()] = true
	}
	names, err := fs.Glob(files, "data/*.csv")
	require.NoError(t, err)
	require.Len(t, names, len(used))
	for _, name := range names {
		require.True(t, used[name], name)
		text, err := files.ReadFile(name)
		require.NoError(t, err)
		size += len(text)
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		require.NoError(t, err)
		require.Contains(t, string(readme), fmt.Sprintf("| `%s` | %d |", strings.TrimPrefix(name, "data/"), len(rows)-1))
	}
	require.Less(t, size, 150_000)
}

// Two sides with the same draws are not apart, and ones with other means are.
func TestApart(t *testing.T) {
	x := func(shift float64) map[string][][]float64 {
		var chains [][]float64
		for c := range 4 {
			var chain []float64
			for i := range 500 {
				chain = append(chain, shift+math.Sin(float64(7*i*i+c)))
			}
			chains = append(chains, chain)
		}
		return map[string][][]float64{"b[1]": chains}
	}
	var a, b, c side
	for range 2 {
		a.add(x(0), 1, 10, 0)
		b.add(x(0), 1, 10, 0)
		c.add(x(0.5), 1, 10, 0)
	}
	z, _ := apart(&a, &b)
	require.Zero(t, z)
	z, of := apart(&a, &c)
	require.Greater(t, z, 10.0)
	require.Equal(t, "mean of b[1]", of)
	require.Equal(t, 20.0, a.Gradients)
	z, _ = apart(&a, &side{})
	require.Equal(t, math.MaxFloat64, z)
	require.False(t, row{Stan: &b, Z: z}.agrees())
}

// Without peers the command measures Kelvin alone.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"-models", "penguins", "-warmup", "200", "-draws", "100"}, &out))
	require.Regexp(t, `(?m)^penguins +1, 3\d +- +0 +\S+ +\S+ +- +-$`, out.String())
	require.ErrorContains(t, run(context.Background(), []string{"-models", "pinguins"}, &out), "the models are sleepstudy")
}
