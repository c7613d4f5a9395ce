package main

import (
	"bufio"
	"fmt"
	"io"
)

// outputJSON is the JSON output.
type outputJSON struct {
	Methods []rowJSON `json:"methods"`
	Claims  []claim   `json:"claims"`
	Notes   []string  `json:"notes"`
	Seconds float64   `json:"seconds"`
}

// rowJSON are the scores of one method on the test data.
type rowJSON struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Accuracy float64  `json:"accuracy"`
	NLL      float64  `json:"nll"`
	Brier    float64  `json:"brier"` // mean (p − y)²
	ECE      float64  `json:"ece"`
	MCE      float64  `json:"mce"`
	AUROC    *float64 `json:"auroc"`  // of the epistemic entropy, for points far from the data; null with one draw
	SD       float64  `json:"sd"`     // mean standard deviation of the probability over the draws, at the test data
	SDFar    float64  `json:"sd_far"` // and far from the data
	Draws    int      `json:"draws"`
	Seconds  float64  `json:"seconds"`
}

// claim is something that is said of these methods, with what this run found.
type claim struct {
	Claim  string `json:"claim"`
	Figure string `json:"figure"`
	Holds  bool   `json:"holds"`
}

func printTable(w io.Writer, out outputJSON) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%-24s %8s %7s %7s %7s %7s %7s %7s %7s %6s %7s\n",
		"", "accuracy", "NLL", "Brier", "ECE", "MCE", "AUROC", "sd", "sd far", "draws", "s")
	for _, r := range out.Methods {
		auroc := "-"
		if r.AUROC != nil {
			auroc = fmt.Sprintf("%.3f", *r.AUROC)
		}
		fmt.Fprintf(b, "%-24s %8.3f %7.4f %7.4f %7.4f %7.4f %7s %7.3f %7.3f %6d %7.1f\n",
			r.Title, r.Accuracy, r.NLL, r.Brier, r.ECE, r.MCE, auroc, r.SD, r.SDFar, r.Draws, r.Seconds)
	}
	fmt.Fprintln(b, "\nAUROC: how well epistemic entropy tells points far from the data from test data. sd: mean "+
		"standard deviation of the probability")
	fmt.Fprintln(b,
		"over the draws, at test data and far from all data. Seconds include the MAP's where a method starts there.")
	for _, n := range out.Notes {
		fmt.Fprintln(b, n+".")
	}
	fmt.Fprintln(b, "\nWhat is said of these methods, and what this run says:")
	for _, c := range out.Claims {
		answer := "no "
		if c.Holds {
			answer = "yes"
		}
		fmt.Fprintf(b, "[%s] %s\n      %s\n", answer, c.Claim, c.Figure)
	}
	return b.Flush()
}
