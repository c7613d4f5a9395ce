package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/gallery.md anew")

const galleryPage = "docs/gallery.md"

// published is a data set of bench/regression/data, whose README says where it is from, with its regression.
type published struct{ file, title, formula, flags, what string }

var gallery = []published{
	{"sleepstudy", "Slopes that differ: reaction times short of sleep", "reaction ~ days + (1 + days | subject)",
		"--factor subject", "Eighteen drivers, each with an intercept and a slope of their own, which are correlated. " +
			"`b[days]` is what a day costs on average, in milliseconds (Belenky et al. 2003)."},
	{"radon", "Partial pooling: radon in 85 counties", "log_radon ~ floor + (1 + floor | county)", "",
		"Counties with few homes are drawn towards the others; `floor` is 1 on the first floor, 0 in a basement (Gelman " +
			"and Hill 2007)."},
	{"penguins", "Interactions: mass and flippers of three species", "mass ~ flipper*species", "",
		"A line for each species; `b[flipper:species[Gentoo]]` is how much steeper that of Gentoo is than that of Adelie " +
			"(Horst et al. 2020)."},
	{"epilepsy", "Counts that vary more than Poisson's: seizures", "seizures ~ lbase*trt + lage + (1 | subject)",
		"--factor subject --family negbinomial", "Four counts of each of 59 patients, with their seizures before the trial " +
			"and the treatment (Thall and Vail 1990)."},
	{"kidney", "Times with an end of observation: infections by catheters",
		"time | cens(censored) ~ age + sex + disease + (1 | patient)", "--factor patient --family cox",
		"Hazard ratios on the log scale, with a frailty for each patient (McGilchrist and Aisbett 1991). With `--family " +
			"weibull` times have a law, which can be predicted."},
	{"inhaler", "Ordered answers: leaflets of two inhalers", "rating ~ treat + period + carry + (1 | subject)",
		"--family cumulative --factor subject", "Ratings from easy, 1, to unclear, 4; a coefficient moves all thresholds " +
			"(Ezzet and Whitehead 1991)."},
	{"verbagg", "Crossed groups: persons and items", "r2 ~ anger + btype + situ + (1 | id) + (1 | item)",
		"--family bernoulli --factor id", "Whether 60 persons would react aggressively in 24 situations: an item response " +
			"model with covariates (De Boeck and Wilson 2004)."},
	{"cbpp", "Shares of trials: pleuropneumonia in herds", "incidence | trials(size) ~ period + (1 | herd)",
		"--family binomial --factor herd --factor period", "New cases among the animals of 15 herds in four periods " +
			"(Lesnoff et al. 2004)."},
	{"mcycle", "Splines for the mean and a line for the spread: a crash test", "accel ~ s(times)",
		"--param 'sigma ~ times'", "The acceleration of a head over time, whose spread grows (Silverman 1985)."},
	{"articles", "Too many zeros: articles of students", "art ~ fem + mar + kid5 + phd + ment",
		"--family zero_inflated_poisson", "Published articles in the last three years of a doctorate; `zi` is the share of " +
			"those who had none whatever their columns (Long 1990)."},
}

// args are those of a command, of words apart by spaces or in quotes.
func args(command string) (out []string) {
	for i, quoted := range strings.Split(command, "'") {
		if i%2 == 1 {
			out = append(out, quoted)
		} else {
			out = append(out, strings.Fields(quoted)...)
		}
	}
	return out
}

func (p published) command() string {
	return strings.TrimSpace(fmt.Sprintf("fit bench/regression/data/%s.csv '%s' %s", p.file, p.formula, p.flags))
}

// summary is the table that a fit prints, with the errors and sizes of a few columns: lines of a name and numbers.
func summary(out string) (lines [][]string) {
	for _, line := range strings.Split(out, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) > 4 && words[0] == "mean":
			lines = [][]string{append([]string{""}, words...)}
		case lines != nil && line == "":
			return lines
		case lines != nil:
			n := len(lines[0]) - 1
			at := len(words) - n
			lines = append(lines, append([]string{strings.Join(words[:at], " ")}, words[at:]...))
		}
	}
	return lines
}

// write is the section of a data set.
func (p published) write(out string) string {
	b := &strings.Builder{}
	command := p.command()
	if len(command) > 100 {
		command = strings.Replace(command, "' --", "' \\\n        --", 1)
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n    kelvin %s\n\n```text\n", p.title, wrap(p.what), command)
	for _, line := range summary(out) {
		fmt.Fprintf(b, "%-30s", line[0])
		for _, v := range line[1:5] {
			fmt.Fprintf(b, " %9s", v)
		}
		b.WriteString("\n")
	}
	_, said, _ := strings.Cut(out, "; checked")
	for _, line := range strings.Split(said, "\n")[1:] {
		if line != "" && !strings.HasPrefix(line, " ") { // findings without their advice
			b.WriteString(line + "\n")
		}
	}
	return b.String() + "```\n"
}

func wrap(text string) string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; len(lines[last])+len(word) > 118 {
			lines = append(lines, word)
		} else {
			lines[last] = strings.TrimSpace(lines[last] + " " + word)
		}
	}
	return strings.Join(lines, "\n")
}

// The gallery's page is what the commands print; with -update it is written. Without, a short run of each has means
// that differ from those of the page by at most 4.5 standard errors of both, which are those that it prints, and the
// halves of the last digits: of some 90 numbers the largest is beyond with a probability of 1 in 1500.
func TestGallery(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Chdir(root)
	text := "# Gallery\n\n" + wrap("Ten published data sets, each with one formula and one command, and the table that "+
		"it prints, without the last columns, and the findings, without the advice. The files and where they are from "+
		"are in [bench/regression/data](../bench/regression/data/README.md). `go test ./cmd/kelvin-fit -run Gallery "+
		"-update` writes this page, and without `-update` compares it with short runs.") + "\n"
	page, err := os.ReadFile(galleryPage)
	if !*update {
		require.NoError(t, err)
	}
	for _, p := range gallery {
		words := append(args(p.command()), "--out", filepath.Join(t.TempDir(), p.file), "--seed", "1")
		if !*update {
			words = append(words, "--chains", "2", "--warmup", "400", "--draws", "300", "--seed", "2")
		}
		out, _ := must(t, words...)
		section := p.write(out)
		if text += section; *update {
			continue
		}
		head, _, _ := strings.Cut(section, "```")
		require.Contains(t, string(page), head)
		_, rest, _ := strings.Cut(string(page), head)
		rest, _, _ = strings.Cut(rest, "\n```\n")
		p.compare(t, summary(out), strings.Split(rest, "\n")[2:])
	}
	if *update {
		require.NoError(t, os.WriteFile(galleryPage, []byte(text), 0o644))
	}
}

// compare compares the means of a run with those of the page.
func (p published) compare(t *testing.T, lines [][]string, page []string) {
	t.Helper()
	for i, line := range lines[1:] {
		require.Less(t, i, len(page))
		words := strings.Fields(strings.TrimPrefix(page[i], line[0]))
		same := strings.HasPrefix(page[i], line[0]) && len(words) == 4
		require.True(t, same, "%s: %q is not of %q", p.file, page[i], line[0])
		number := func(s string) float64 {
			v, err := strconv.ParseFloat(s, 64)
			require.NoError(t, err)
			return v
		}
		_, decimals, _ := strings.Cut(words[0], ".")
		sd, mcse := number(words[1]), number(line[5])
		error := 4.5*math.Hypot(mcse, sd/math.Sqrt(400)) + math.Pow(10, -float64(len(decimals)))
		require.InDelta(t, number(words[0]), number(line[1]), error, "%s %s", p.file, line[0])
	}
}
