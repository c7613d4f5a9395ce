package main

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/regression"
)

// files are the data and Stan's programs.
//
//go:embed data stan
var files embed.FS

// group is a term of a formula with effects of levels: (1 | by), or (1 + slope | by).
type group struct{ by, slope string }

// regressionCase is a regression as a formula and as a Stan program.
type regressionCase struct {
	name    string // and of its Stan program
	file    string // of its data; empty is name
	factors []string
	formula regression.Formula
	// For Stan: the outcome and the columns of X, apart by spaces. A column is a product, with *, of columns of the table
	// and of indicators of levels, as species=Gentoo; empty takes those that Kelvin has.
	outcome string
	columns string
	groups  []group
	more    func(m *stanMaker) // data of this program alone
	accept  float64            // target of the acceptance of both sides; 0 is 0.8, the default of both
}

// cases are the regressions. The README of the data says where they are from.
var cases = []regressionCase{
	{name: "sleepstudy", factors: []string{"subject"}, accept: 0.95,
		formula: regression.Formula{Mean: "reaction ~ days + (1 + days | subject)"},
		outcome: "reaction", columns: "days", groups: []group{{"subject", "days"}}},
	{name: "radon", accept: 0.95,
		formula: regression.Formula{Mean: "log_radon ~ floor + (1 + floor | county)"},
		outcome: "log_radon", columns: "floor", groups: []group{{"county", "floor"}}},
	{name: "penguins", formula: regression.Formula{Mean: "mass ~ flipper * species"}, outcome: "mass",
		columns: "flipper species=Chinstrap species=Gentoo flipper*species=Chinstrap flipper*species=Gentoo"},
	{name: "epilepsy_poisson", file: "epilepsy", factors: []string{"subject"},
		formula: regression.Formula{Mean: "seizures ~ lbase * trt + lage + (1 | subject)", Family: regression.Poisson{}},
		outcome: "seizures", columns: "lbase trt=progabide lage lbase*trt=progabide", groups: []group{{by: "subject"}}},
	{name: "epilepsy_negbin", file: "epilepsy", factors: []string{"subject"},
		formula: regression.Formula{Mean: "seizures ~ lbase * trt + lage + (1 | subject)",
			Family: regression.NegativeBinomial{}},
		outcome: "seizures", columns: "lbase trt=progabide lage lbase*trt=progabide", groups: []group{{by: "subject"}}},
	{name: "kidney", factors: []string{"patient"}, accept: 0.95,
		formula: regression.Formula{Mean: "time | cens(censored) ~ age + sex + disease + (1 | patient)",
			Family: regression.Weibull{}},
		outcome: "time", columns: "age sex=male disease=GN disease=PKD disease=other", groups: []group{{by: "patient"}},
		more: func(m *stanMaker) { m.data["censored"] = m.numbers("censored=right") }},
	{name: "inhaler", factors: []string{"subject"},
		formula: regression.Formula{Mean: "rating ~ treat + period + carry + (1 | subject)",
			Family: regression.Cumulative{}},
		outcome: "rating", columns: "treat period carry", groups: []group{{by: "subject"}},
		more: func(m *stanMaker) { m.data["C"] = slices.Max(m.numbers("rating")) }},
	{name: "verbagg", factors: []string{"id"},
		formula: regression.Formula{Mean: "r2 ~ anger + btype + situ + (1 | id) + (1 | item)",
			Family: regression.Bernoulli{}},
		outcome: "r2", columns: "anger btype=scold btype=shout situ=self", groups: []group{{by: "id"}, {by: "item"}}},
	{name: "cbpp", factors: []string{"herd", "period"},
		formula: regression.Formula{Mean: "incidence | trials(size) ~ period + (1 | herd)", Family: regression.Binomial{}},
		outcome: "incidence", columns: "period=2 period=3 period=4", groups: []group{{by: "herd"}},
		more: func(m *stanMaker) { m.data["trials"] = m.numbers("size") }},
	{name: "gasoline", accept: 0.95,
		formula: regression.Formula{Mean: "yield ~ ep + (1 | batch)", Family: regression.Beta{}},
		outcome: "yield", columns: "ep", groups: []group{{by: "batch"}}},
	{name: "stackloss", formula: regression.Formula{Mean: "loss ~ air + water + acid", Family: regression.StudentT{}},
		outcome: "loss", columns: "air water acid"},
	{name: "mcycle", accept: 0.95,
		formula: regression.Formula{Mean: "accel ~ s(times)", Params: map[string]string{"sigma": "~ times"}},
		outcome: "accel", more: smooth},
	{name: "articles", formula: regression.Formula{Mean: "art ~ fem + mar + kid5 + phd + ment",
		Family: regression.ZeroInflated{Of: regression.Poisson{}}},
		outcome: "art", columns: "fem=Women mar=Single kid5 phd ment"},
}

func (c regressionCase) id() string { return c.name }

func allNames() string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return strings.Join(names, ",")
}

// source is the name of the file of the data.
func (c regressionCase) source() string { return "data/" + cmp.Or(c.file, c.name) + ".csv" }

// table reads the data.
func (c regressionCase) table() (*data.Table, error) {
	f, err := files.Open(c.source())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return data.CSV{Factors: c.factors, Name: c.source()}.Read(f)
}

// program is the text of the Stan program, and how many lines it has without comments.
func (c regressionCase) program() (text string, lines int, err error) {
	b, err := files.ReadFile("stan/" + c.name + ".stan")
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	return string(b), lines, err
}
