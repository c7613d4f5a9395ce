package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/visible"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/store"
)

const formula = "yield ~ rain + seed + (1 | block)"

// few are flags for a fit that takes a moment.
var few = []string{"--factor", "block", "--chains", "2", "--warmup", "150", "--draws", "100", "--seed", "7"}

// call runs a command.
func call(t *testing.T, args ...string) (out, err string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = (&app{out: visible.Writer(&o), err: &e}).run(context.Background(), args)
	return o.String(), e.String(), code
}

// must runs a command that has to succeed.
func must(t *testing.T, args ...string) (out, err string) {
	t.Helper()
	out, err, code := call(t, args...)
	require.Equal(t, 0, code, "%v: %s", args, err)
	return out, err
}

// fits is a folder with the fits "fit" and "plain" of the data in testdata.
func fits(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"plots.csv", "new.csv"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, name), text, 0o644))
	}
	t.Chdir(root)
	return root
}

// A fit leaves a folder that the other commands take: summary of kelvin, predict with a level that is new, effects,
// compare and a program that compiles.
func TestCommands(t *testing.T) {
	repository, err := filepath.Abs("../..")
	require.NoError(t, err)
	root := fits(t)
	out, said := must(t, append([]string{"fit", "plots.csv", formula, "-param", "sigma ~ seed", "--prior",
		"b[rain]=normal(0, 1)"}, few...)...)
	for _, text := range []string{"family gaussian", "b[rain]", "given: b[rain] = normal(0, 1)", "sd_block[Intercept]",
		"r_hat", "2 chains of 100 draws; checked"} {
		assert.Contains(t, out, text)
	}
	assert.Contains(t, said, "wrote fit, with report.html")
	assert.NotContains(t, out, "z_block")
	_, _ = must(t, append([]string{"fit", "plots.csv", "yield ~ rain", "--out", "plain"}, few...)...)

	t.Run("folder", func(t *testing.T) {
		for _, name := range []string{"data.csv", "model.json", "report.html", "effect-rain.png", "effect-seed.png"} {
			assert.FileExists(t, filepath.Join("fit", name))
		}
		page, err := os.ReadFile("fit/report.html")
		require.NoError(t, err)
		for _, text := range []string{"Predictive checks", "Pareto k", "Effects", "normal(0, 1)"} {
			assert.Contains(t, string(page), text)
		}
		inf, err := store.Open("fit/draws.zarr")
		require.NoError(t, err)
		assert.Equal(t, 40, inf.LogLikelihood.Dim())
		assert.Equal(t, 40, inf.PosteriorPredictive.Dim())
		assert.Len(t, inf.ObservedData[0].Values, 40)
		labels, err := os.ReadFile("fit/draws.zarr/posterior/r_block_dim_0/.zarray")
		require.NoError(t, err)
		assert.Contains(t, string(labels), `"<U`, "coordinates of xarray")
		assert.Contains(t, inf.Posterior.Names(), "r_block[3,Intercept]")
	})
	t.Run("summary", func(t *testing.T) {
		c := exec.Command("go", "run", "./cmd/kelvin", "summary", filepath.Join(root, "fit", "draws.zarr"))
		c.Dir, c.Env = repository, append(os.Environ(), "PWD="+repository)
		text, err := c.CombinedOutput()
		require.NoError(t, err, "%s", text)
		assert.Contains(t, string(text), "b[seed[old]]")
	})
	t.Run("predict", testPredict)
	t.Run("export", testExport)
	t.Run("effects", testEffects)
	t.Run("hypothesis", func(t *testing.T) {
		out, _ := must(t, "hypothesis", "fit", "rain > 0", "b[rain] - 0.1 = intercept")
		assert.Contains(t, out, "b[rain] - 0.1 = intercept ")
		assert.Regexp(t, `rain > 0: (probability [0-9.]+, evidence ratio|no draw is against it)`, out)
		assert.Regexp(t, `intercept: the data make it [0-9.e-]+ times as likely`, out)
		_, said, code := call(t, "hypothesis", "fit", "rains > 0")
		assert.Equal(t, 1, code)
		assert.Contains(t, said, `the draws have no "rains": the nearest is "rain"`)
	})
	t.Run("terms", testTerms)
	t.Run("compare", func(t *testing.T) {
		out, _ := must(t, "compare", "fit/", "plain")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.GreaterOrEqual(t, len(lines), 3)
		assert.True(t, strings.HasPrefix(lines[1], "fit ") && strings.HasPrefix(lines[2], "plain "), out)
	})
	t.Run("code", func(t *testing.T) { testCode(t, repository) })
	t.Run("errors", testErrors)
}

func testPredict(t *testing.T) {
	_, said, code := call(t, "predict", "fit", "new.csv")
	assert.Equal(t, 1, code)
	assert.Contains(t, said, `new.csv, line 3, column "block"`)
	assert.Contains(t, said, "--new-levels draw or mean predicts for new levels")

	out, _ := must(t, "predict", "fit", "new.csv", "--new-levels", "mean")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"block", "seed", "rain", "note", "predicted_mean", "predicted_sd", "predicted_lower",
		"predicted_upper", "expected_mean", "expected_sd", "expected_lower", "expected_upper"}, rows[0])
	assert.Equal(t, []string{"2", "old", "30", "known, dry"}, rows[1][:4])
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return v
	}
	for _, row := range rows[1:] {
		assert.Less(t, number(row[6]), number(row[4]))
		assert.Less(t, number(row[4]), number(row[7]))
		assert.Less(t, number(row[9]), number(row[5]), "the mean is known better than an outcome")
		assert.InDelta(t, number(row[8]), number(row[4]), 0.5)
	}
	must(t, "predict", "fit", "new.csv", "--new-levels", "draw", "-o", "drawn.csv", "--interval", "0.5")
	text, err := os.ReadFile("drawn.csv")
	require.NoError(t, err)
	drawn, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	require.NoError(t, err)
	assert.Greater(t, number(drawn[2][9]), number(rows[2][9]), "drawn effects are wider than their mean")
	assert.Equal(t, rows[1][8:10], drawn[1][8:10], "known levels have the same")
}

// A service of the exported file has the numbers of predict, to the digits that this writes, and names a level that is
// new.
func testExport(t *testing.T) {
	_, said := must(t, "export", "fit/")
	assert.Equal(t, "wrote "+filepath.Join("fit", "model.kelvin")+"\n", said)
	must(t, "export", "fit", "--out", "other.kelvin")
	text, err := os.ReadFile("other.kelvin")
	require.NoError(t, err)
	again, err := os.ReadFile("fit/model.kelvin")
	require.NoError(t, err)
	assert.Equal(t, text, again)
	model, err := serve.Load(bytes.NewReader(text))
	require.NoError(t, err)
	h, err := (&serve.Service{Model: model}).Handler()
	require.NoError(t, err)
	ask := func(block string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/predict", strings.NewReader(
			`{"rows": [{"block": "`+block+`", "seed": "old", "rain": 30}], "sites": ["yield", "expected"], "interval": 0.9}`)))
		return w
	}
	var answer struct {
		Predictions []map[string]struct{ Mean, Low, High float64 }
	}
	require.NoError(t, json.Unmarshal(ask("2").Body.Bytes(), &answer))
	out, _ := must(t, "predict", "fit", "new.csv", "--new-levels", "mean")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	got := answer.Predictions[0]
	for at, v := range map[int]float64{4: got["yield"].Mean, 8: got["expected"].Mean, 10: got["expected"].Low,
		11: got["expected"].High} {
		assert.Equal(t, rows[1][at], strconv.FormatFloat(v, 'g', 6, 64), rows[0][at])
	}
	assert.Contains(t, ask("9").Body.String(), `the training data do not have the levels \"9\"`)
}

func testEffects(t *testing.T) {
	out, said := must(t, "effects", "fit", "--by", "rain")
	assert.Contains(t, out, "rain ")
	assert.Contains(t, said, filepath.Join("fit", "effect-rain.png"))
	out, _ = must(t, "effects", "-by", "rain", "fit", "-column", "seed")
	assert.Equal(t, 5, strings.Count(out, "seed[old - new], rain "))
	assert.FileExists(t, filepath.Join("fit", "effect-rain-seed.png"))
	out, _ = must(t, "effects", "fit", "--by", "seed", "--column", "rain")
	assert.Contains(t, out, "rain, seed new")
	assert.Contains(t, out, "rain, seed old")
}

// Monotonic effects, Gaussian processes, and families of categories and counts with zeros, from file to prediction.
func testTerms(t *testing.T) {
	text := "x,dose,pain,eggs,a,b,n,p,q,w\n"
	for i := range 30 {
		text += fmt.Sprintf("%g,%d,%s,%d,%d,%d,4,0.%d,0.%d,%s\n", float64(i%7)/2, i%3,
			[]string{"low", "mid", "high"}[i*i%5%3], []int{0, 2, 1, 0, 3}[i%5], i%5, 4-i%5, 2+i%5, 8-i%5,
			[]string{"1", "NA", "3", "2.5"}[i%4])
	}
	require.NoError(t, os.WriteFile("terms.csv", []byte(text), 0o644))
	for k, c := range [][]string{{"x ~ mo(dose) + gp(x, k = 5)"}, {"eggs ~ x", "--family", "hurdle_poisson"},
		{"pain ~ x", "--family", "sratio", "--link", "probit", "--levels", "pain=low,mid,high"},
		{"pain ~ mo(dose)", "--family", "acat", "--levels", "pain=low,mid,high"},
		{"cbind(a, b) | trials(n) ~ x", "--family", "multinomial"}, {"cbind(p, q) ~ x", "--family", "dirichlet"},
		{"mvbind(x, eggs) ~ mo(dose)*p"}, {"x ~ p*mi(w) + gp(eggs, k = 4, by = pain)", "--param", "w ~ p"},
		{"eggs ~ x", "--family", "cox"}} {
		name := fmt.Sprint("terms", k)
		must(t, append([]string{"fit", "terms.csv", "--out", name, "--chains", "2", "--warmup", "150", "--draws", "50"},
			c...)...)
		assert.FileExists(t, filepath.Join(name, "report.html"))
		out, _ := must(t, "predict", name, "terms.csv")
		assert.Equal(t, 31, strings.Count(out, "\n"))
		out, _ = must(t, "code", name)
		assert.Contains(t, out, c[0])
		column := "x"
		switch {
		case strings.Contains(c[0], "mo(dose)"):
			column = "dose"
		case strings.Contains(c[0], "mi(w)"):
			column = "w"
		}
		must(t, "effects", name, "--by", column)
		assert.FileExists(t, filepath.Join(name, "effect-"+column+".png"))
	}
}

// The program is formatted, compiles and is vetted, with all options.
func testCode(t *testing.T, repository string) {
	must(t, append([]string{"fit", "plots.csv", "yield ~ seed", "--drop-missing", "--levels", "seed=old,new",
		"--missing", "-", "--decimal", ".", "--prior", "sigma=gamma(2, 1)", "--family", "student", "--out", "more",
		"--method", "laplace"}, few...)...)
	must(t, append([]string{"fit", "plots.csv", "yield ~ rain", "--family", "cox", "--out", "risk"}, few...)...)
	dir := t.TempDir()
	for _, fit := range []string{"fit", "more", "risk"} {
		out, _ := must(t, "code", fit)
		path := filepath.Join(dir, fit, "main.go")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
		library := filepath.Join(dir, fit, "library", "main.go") // compiled and not linked, which takes long
		require.NoError(t, os.MkdirAll(filepath.Dir(library), 0o755))
		text := strings.Replace(out, "package main", "package library", 1)
		require.NoError(t, os.WriteFile(library, []byte(text), 0o644))
		for _, args := range [][]string{{"gofmt", "-l", path}, {"go", "vet", path}, {"go", "build", library}} {
			c := exec.Command(args[0], args[1:]...)
			c.Dir, c.Env = repository, append(os.Environ(), "PWD="+repository)
			text, err := c.CombinedOutput()
			require.NoError(t, err, "%s\n%s", text, out)
			assert.Empty(t, string(text))
		}
	}
}

// Each mistake says what is wrong and where.
func testErrors(t *testing.T) {
	write := func(name, text string) string {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	require.NoError(t, os.Mkdir("other", 0o755))
	fit := func(formula string, flags ...string) []string {
		return append([]string{"fit", "plots.csv", formula, "--out", "x"}, flags...)
	}
	predict := func(file, text string, flags ...string) []string {
		return append([]string{"predict", "fit", write(file, text)}, flags...)
	}
	for name, c := range map[string]struct {
		code int
		says string
		args []string
	}{
		"there":     {1, "fit is there already", fit(formula, "--out", "fit")},
		"not a fit": {1, "other is not the folder of a fit", fit(formula, "--out", "other", "--force")},
		"no file":   {1, "nothing.csv", []string{"fit", "nothing.csv", formula, "--out", "x"}},
		"column":    {1, `column 9: there is no column "rainn": the nearest is "rain"`, fit("yield ~ rainn")},
		"syntax":    {1, "column 15: expected a column", fit("yield ~ rain +")},
		"cell": {1, `bad.csv, line 3, column "x"`,
			[]string{"fit", write("bad.csv", "y,x\n1,2\n2,two\n3,4\n"), "y ~ x", "--out", "x"}},
		"missing": {1, `gaps.csv: data: line 3, column "x"`,
			[]string{"fit", write("gaps.csv", "y,x\n1,2\n2,\n3,4\n"), "y ~ x", "--out", "x"}},
		"family":  {1, "the families are ", fit(formula, "--family", "normal")},
		"link":    {1, `its links are ["log"]`, fit(formula, "--family", "gamma", "--link", "logit")},
		"outcome": {1, "it must be 0 or 1", fit(formula, "--family", "bernoulli")},
		"prior":   {2, "write it as normal(mean, sd)", fit(formula, "--prior", "b=normal(1)")},
		"law":     {2, "is no distribution of priors", fit(formula, "--prior", "b=norm(1)")},
		"domain":  {2, "scale", fit(formula, "--prior", "b=normal(0, -1)")},
		"unused":  {1, "the model has nothing of that name", fit(formula, "--prior", "b[dew]=normal(0, 1)")},
		"method":  {2, "the methods are ", fit(formula, "--method", "gibbs")},
		"flag":    {2, "kelvin fit -help", fit(formula, "--burnin", "3")},
		"few":     {2, "kelvin fit -help", []string{"fit", "plots.csv"}},
		"folder":  {1, "other is not the folder of a fit", []string{"predict", "other", "new.csv"}},
		"header": {1, `short.csv, column "rain": the formula needs it, and the file has "seed"`,
			predict("short.csv", "seed,block\nold,1\n")},
		"level": {1, `tall.csv, line 2, column "seed"`,
			predict("tall.csv", "seed,block,rain\nolder,1,20\n", "--new-levels", "mean")},
		"number": {1, `worded.csv, line 2, column "rain"`, predict("worded.csv", "seed,block,rain\nold,1,much\n")},
		"named": {1, `has a column "expected_sd" already`,
			predict("named.csv", "seed,block,rain,expected_sd\nold,1,20,1\n")},
		"by":       {1, `which are ["rain" "seed"]`, []string{"effects", "fit", "--by", "block"}},
		"outcomes": {1, "different outcomes", []string{"compare", "fit", "half"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "outcomes" {
				must(t, append([]string{"fit", "plots.csv", "log(yield) ~ rain", "--out", "half"}, few...)...)
			}
			_, said, code := call(t, c.args...)
			assert.Equal(t, c.code, code)
			assert.Contains(t, said, c.says)
			assert.NoDirExists(t, "x")
		})
	}
	t.Run("changed", func(t *testing.T) {
		require.NoError(t, os.WriteFile("plain/data.csv", []byte("rain,yield\n1,2\n2,2.5\n"), 0o644))
		_, said, code := call(t, "effects", "plain", "--by", "rain")
		assert.Equal(t, 1, code)
		assert.Contains(t, said, "data.csv has changed since the fit")
	})
}

// cutter cancels when something is said.
type cutter struct {
	text   string
	cancel func()
}

func (c cutter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

// A fit that is interrupted leaves no folder, and one that is to be replaced as it was.
func TestInterrupted(t *testing.T) {
	fits(t)
	for _, when := range []string{"sampling by", "draws, after"} {
		ctx, cancel := context.WithCancel(context.Background())
		var out bytes.Buffer
		a := &app{out: &out, err: cutter{when, cancel}}
		assert.Equal(t, 1, a.run(ctx, append([]string{"fit", "plots.csv", formula}, few...)))
		names, err := filepath.Glob("*")
		require.NoError(t, err)
		assert.Equal(t, []string{"new.csv", "plots.csv"}, names)
	}
	must(t, append([]string{"fit", "plots.csv", "yield ~ seed"}, few...)...)
	before, err := os.ReadFile("fit/model.json")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	a := &app{out: &bytes.Buffer{}, err: cutter{"draws, after", cancel}}
	assert.Equal(t, 1, a.run(ctx, append([]string{"fit", "plots.csv", formula, "--force"}, few...)))
	after, err := os.ReadFile("fit/model.json")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	must(t, append([]string{"fit", "plots.csv", formula, "--force"}, few...)...)
	after, err = os.ReadFile("fit/model.json")
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
	names, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Equal(t, []string{"fit", "new.csv", "plots.csv"}, names)
}
