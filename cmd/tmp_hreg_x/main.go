package main

import (
	"fmt"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/regression"
)

func main() {
	t, err := data.CSV{}.Open("/tmp/hreg_try/visits.csv")
	if err != nil {
		panic(err)
	}
	for _, c := range [][2]string{{os.Args[1], os.Args[2]}} {
		f, err := regression.FamilyNamed(c[0], "")
		if err != nil {
			panic(err)
		}
		m, err := regression.Formula{Mean: c[1], Family: f, DropMissing: true}.Fit(t)
		if err != nil {
			panic(err)
		}
		start, err := m.Start(m.Batch(), 1, 1)
		if err != nil {
			panic(err)
		}
		at := time.Now()
		_, report, err := infer.Compile(m.Target(), start, m.Batch(), native.Options{})
		fmt.Println(c, report, err, time.Since(at))
	}
}
