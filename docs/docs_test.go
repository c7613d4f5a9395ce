// Package docs_test keeps the code in the documents equal to code that is compiled.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBlocks finds every Go block of a document in a program that the document says it is from.
func TestBlocks(t *testing.T) {
	const first = "../examples/eightschools/main.go"
	const recipes = "../dist/recipe_test.go ../dist/recipe_row_test.go ../infer/sgmcmc/recipe_test.go " +
		"../infer/native/internal/lower/recipe_test.go"
	for _, c := range []struct {
		doc   string
		first string // the program of the first block: files, or a folder of files
		rest  string // and that of the others; "" where they are single lines
	}{
		{"tutorial.md", "../examples/tutorial/main.go", "../examples/tutorial/main.go"},
		{"language.md", first, "../examples/language"},
		{"data.md", "../data/example_test.go", "../data/batch/example_test.go"},
		{"diagnostics.md", "../examples/broken/main.go", ""},
		{"regression.md", "../examples/regression", "../examples/regression"},
		{"survival.md", "../models/survival/example_test.go", "../models/survival/example_test.go"},
		{"gp.md", "../examples/gp/main.go", "../examples/gp/main.go"},
		{"statespace.md", "../examples/series/main.go", "../examples/series/main.go"},
		{"tutorials/1-logistic-regression.md", "../examples/diabetes", "../examples/diabetes"},
		{"tutorials/2-hierarchical-models.md", "../examples/funnel", "../examples/funnel"},
		{"tutorials/3-methods-and-temperature.md", "../examples/swap", "../examples/swap"},
		{"tutorials/4-large-data.md", "../examples/minibatch", "../examples/minibatch"},
		{"tutorials/5-a-network-with-uncertainty.md", "../examples/uncertainty", "../examples/uncertainty"},
		{"tutorials/6-your-own-sampler.md", "../examples/sampler", "../examples/sampler"},
		{"tutorials/7-coming-from.md", "../examples/migrate", "../examples/migrate"},
		{"tutorials/mnist.md", "../examples/digits", "../examples/digits"},
		{"checks.md", "../examples/checks", "../examples/checks"},
		{"evidence.md", "../examples/evidence/main.go", "../examples/evidence/main.go"},
		{"native.md", "../infer/native/tour_test.go", ""},
		{"ode.md", "../ode/example_test.go", "../ode/example_test.go"},
		{"cluster.md", "../cluster/example_test.go", ""},
		{"hmc.md", "../infer/hmc/example_test.go", ""},
		{"pathfinder.md", "../infer/pathfinder/example_test.go", "../infer/pathfinder/example_test.go"},
		{"svi.md", "../infer/svi/example_test.go", "../infer/svi"},
		{"gradient-free.md", "../infer/mcmc/example_test.go", "../infer/mcmc/example_test.go"},
		{"blocks.md", "../infer/gibbs/example_test.go", "../infer/gibbs/example_test.go"},
		{"microcanonical.md", "../infer/hmc/microcanonical_example_test.go", ""},
		{"deploy.md", "../serve/example_test.go", "../serve/testdata/app/main.go ../serve/testdata/means/main.go"},
		{"../README.md", first, "../examples/regression"},
		{"../CONTRIBUTING.md", recipes, recipes},
	} {
		text, err := os.ReadFile(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		found := blocks(string(text))
		if len(found) == 0 {
			t.Errorf("%s has no Go block", c.doc)
		}
		for i, b := range found {
			path := c.rest
			if i == 0 {
				path = c.first
			}
			if path == "" {
				continue
			}
			if program := source(t, path); !strings.Contains(program, b) {
				t.Errorf("%s, block %d is not in %s:\n%s", c.doc, i, path, b)
			}
		}
	}
}

// source is the text of files, or of all Go files in a folder.
func source(t *testing.T, path string) (text string) {
	t.Helper()
	files := strings.Fields(path)
	if filepath.Ext(path) == "" {
		var err error
		if files, err = filepath.Glob(filepath.Join(path, "*.go")); err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", path, err)
		}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// TestFirstProgram counts the lines of the program that README and the language page open with: at most 30, without the
// empty one between its functions.
func TestFirstProgram(t *testing.T) {
	for _, doc := range []string{"language.md", "../README.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, line := range strings.Split(blocks(string(text))[0], "\n") {
			if line != "" {
				lines++
			}
		}
		if lines > 30 {
			t.Errorf("the first program of %s has %d lines", doc, lines)
		}
	}
}

func blocks(text string) []string {
	var out []string
	for {
		start := strings.Index(text, "```go\n")
		if start < 0 {
			return out
		}
		text = text[start+len("```go\n"):]
		end := strings.Index(text, "```")
		if end < 0 {
			return out
		}
		out = append(out, text[:end])
		text = text[end:]
	}
}

// The examples that the README lists are there.
func TestExamplesExist(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| `go run ./examples/...` | |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| ((?:`[a-z_/]+`(?:, )?)+) \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 25 {
		t.Fatalf("only %d rows of examples were found", len(rows))
	}
	for _, row := range rows {
		for _, name := range strings.Split(row[1], ", ") {
			if _, err := os.Stat(filepath.Join("..", "examples", strings.Trim(name, "`"), "main.go")); err != nil {
				t.Errorf("README: %v", err)
			}
		}
	}
}

// The files that the page of the design names are there.
func TestFilesExist(t *testing.T) {
	text, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("`([a-z_/<>*.]+/[a-z_<>*]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		found++
		files, err := filepath.Glob(filepath.Join("..", strings.ReplaceAll(m[1], "<name>", "*")))
		if err != nil || len(files) == 0 {
			t.Errorf("there is no %s (%v)", m[1], err)
		}
	}
	if found < 8 {
		t.Errorf("only %d files were found", found)
	}
}
