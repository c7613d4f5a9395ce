// Command regression fits a regression with groups by a formula: reaction times of 18 drivers over ten days with three
// hours of sleep a night (Belenky et al. 2003, Journal of Sleep Research 12, 1–12; 180 numbers).
//
//	go run ./examples/regression
package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/regression"
)

//go:embed sleepstudy.csv
var sleepstudy string

// fit samples a formula.
func fit(ctx context.Context, formula string, table *data.Table) (*regression.Model, *draws.Draws, error) {
	model, err := regression.Formula{Mean: formula}.Fit(table)
	if err != nil {
		return nil, nil, err
	}
	posterior, err := infer.Sample(ctx, model, hmc.NUTS{TargetAccept: 0.95}, infer.Options{Seed: 1})
	return model, posterior, err
}

func run(ctx context.Context) error {
	table, err := data.CSV{Factors: []string{"subject"}}.Read(strings.NewReader(sleepstudy))
	if err != nil {
		return err
	}
	model, posterior, err := fit(ctx, "reaction ~ days + (1 + days | subject)", table)
	if err != nil {
		return err
	}
	fmt.Print(model)
	summary, err := model.Summary(posterior)
	if err != nil {
		return err
	}
	report, err := diag.Diagnose(posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("%v%v\n", summary, report)
	if err := newcomer(model, posterior); err != nil {
		return err
	}
	return compare(ctx, model, posterior, table)
}

// newcomer predicts the tenth day of a driver who was measured and of one who was not.
func newcomer(model *regression.Model, posterior *draws.Draws) error {
	rows, err := data.NewTable(data.Column{Name: "days", Numbers: []float64{9, 9}},
		data.Column{Name: "subject", Labels: []string{"308", "new"}})
	if err != nil {
		return err
	}
	predicted, err := model.Predict(posterior, regression.Rows{Table: rows, DrawNew: true, Seed: 1})
	if err != nil {
		return err
	}
	q, err := predicted.Quantile("reaction", 0.05, 0.5, 0.95)
	if err != nil {
		return err
	}
	for i, who := range []string{"driver 308", "a new driver"} {
		fmt.Printf("day 9, %-12s  median %.0f ms, 90 %% from %.0f to %.0f\n", who, q[1][i], q[0][i], q[2][i])
	}
	return nil
}

// compare asks whether drivers differ in how sleep is lost on them.
func compare(ctx context.Context, model *regression.Model, posterior *draws.Draws, table *data.Table) error {
	simpler, of, err := fit(ctx, "reaction ~ days + (1 | subject)", table)
	if err != nil {
		return err
	}
	slopes, err := model.LOO(posterior)
	if err != nil {
		return err
	}
	levels, err := simpler.LOO(of)
	if err != nil {
		return err
	}
	models := []loo.Model{slopes.Model("slopes differ"), levels.Model("levels differ")}
	ranked, err := loo.Compare(models, loo.Options{})
	if err == nil {
		fmt.Printf("\n%v", ranked)
	}
	return err
}

func main() { command.Main("regression", run) }
