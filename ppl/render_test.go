package ppl_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// edges are the arrows of a graph.
func edges(dot string) []string {
	var out []string
	for _, line := range strings.Split(dot, "\n") {
		if strings.Contains(line, "->") {
			out = append(out, strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(line, `"`, "")), ";"))
		}
	}
	return out
}

func TestRenderEightSchools(t *testing.T) {
	dot, err := ppl.Render(schools, schoolData(t))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"mu -> theta", "tau -> theta", "theta -> y"}, edges(dot))
	require.Contains(t, dot, `label="schools (8)"`)
	inside := dot[strings.Index(dot, "subgraph"):]
	inside = inside[:strings.Index(inside, "}")]
	require.Contains(t, inside, `"theta" [`)
	require.Contains(t, inside, `"y" [shape=ellipse, style=filled`)
	require.NotContains(t, inside, `"mu" [`)
	draw(t, dot)
}

// Dependence goes through deterministic sites, factors and nested plates; a discrete latent variable can be drawn too.
func TestRenderDependence(t *testing.T) {
	model := func(c *ppl.Ctx) {
		p := c.Param("p", scalar(0.3), support.UnitInterval)
		a := c.Sample("a", dist.Normal(p, 1))
		b := c.Deterministic("b", a.Exp())
		z := c.Sample("z", dist.Bernoulli(p))
		c.Plate("outer", 3, func(c *ppl.Ctx) {
			c.Plate("inner", 2, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(b, 1), c.Data("y")) })
		})
		c.Factor("f", a.Mul(z))
	}
	dot, err := ppl.Render(model, infer.Batch{"y": matrix(2, 3, 1, 2, 3, 4, 5, 6)})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"p -> a", "p -> z", "a -> b", "b -> y", "a -> f", "z -> f"}, edges(dot))
	require.Less(t, strings.Index(dot, "outer (3)"), strings.Index(dot, "inner (2)"))
	draw(t, dot)
}

// A Density depends on its inputs, and what comes behind it is drawn too.
func TestRenderDensity(t *testing.T) {
	model := func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		c.Density("f", func(x, grad [][]float64) float64 { return 0 }, a)
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a.Add(b), 1), c.Data("y")) })
	}
	dot, err := ppl.Render(model, infer.Batch{"y": vec(1, 2)})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a -> f", "a -> y", "b -> y"}, edges(dot))
	draw(t, dot)
}

// draw has Graphviz read the graph, where it is installed.
func draw(t *testing.T, dot string) {
	path, err := exec.LookPath("dot")
	if err != nil {
		t.Log("Graphviz is not installed: the graph was not drawn")
		return
	}
	out := t.TempDir() + "/graph.svg"
	cmd := exec.Command(path, "-Tsvg", "-o", out)
	cmd.Stdin = strings.NewReader(dot)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	svg, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(svg), "<svg")
}

// Arrows go to the parts of distributions that are made of others.
func TestRenderParts(t *testing.T) {
	model := func(c *ppl.Ctx) {
		a, b, z := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.HalfNormal(1)), c.Sample("z", dist.Beta(1, 1))
		c.Observe("m", dist.Mixture([]float64{0.5, 0.5}, dist.Normal(a, 1), dist.Normal(0, b)), scalar(1))
		c.Observe("t", dist.Truncated(dist.Normal(a, 1), 0, 3), scalar(1))
		c.Observe("k", dist.ZeroInflated(z, dist.Poisson(b)), scalar(1))
	}
	dot, err := ppl.Render(model, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a -> m", "b -> m", "a -> t", "z -> k", "b -> k"}, edges(dot))
}
