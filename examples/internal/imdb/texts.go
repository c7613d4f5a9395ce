package imdb

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// readTexts reads the archive's texts, and makes the vocabulary of the training reviews.
func readTexts(dir string) (train, test Data, err error) {
	parts := map[string][2][][]string{} // words of each review, by part and class
	counts := map[string]int{}
	for _, part := range []string{"train", "test"} {
		var classes [2][][]string
		for label, class := range []string{"neg", "pos"} {
			folder := filepath.Join(dir, part, class)
			files, err := os.ReadDir(folder)
			if err != nil {
				return train, test, missing(dir, err)
			}
			for _, file := range files {
				if filepath.Ext(file.Name()) != ".txt" {
					continue
				}
				text, err := os.ReadFile(filepath.Join(folder, file.Name()))
				if err != nil {
					return train, test, fmt.Errorf("imdb: %w", err)
				}
				review := words(string(text))
				classes[label] = append(classes[label], review)
				if part == "train" {
					for _, w := range review {
						counts[w]++
					}
				}
			}
			if len(classes[label]) == 0 {
				return train, test, fmt.Errorf("imdb: %s has no reviews: expected files that end in .txt", folder)
			}
		}
		parts[part] = classes
	}
	// By falling frequency; words of one frequency by the alphabet.
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	tokens := map[string]int{}
	for i, w := range order[:min(len(order), Words-2)] {
		tokens[w] = i + 2
	}
	return tokenised(parts["train"], tokens), tokenised(parts["test"], tokens), nil
}

// tokenised is the last words of each review, negative ones first.
func tokenised(classes [2][][]string, tokens map[string]int) (d Data) {
	for label, reviews := range classes {
		for _, review := range reviews {
			last := review[max(0, len(review)-Length):]
			row := make([]int, Length)
			for i, w := range last {
				t, ok := tokens[w]
				if !ok {
					t = 1
				}
				row[Length-len(last)+i] = t
			}
			d.Tokens, d.Labels = append(d.Tokens, row...), append(d.Labels, label)
		}
	}
	return d
}

// words are runs of letters and digits, in lower case, with an apostrophe within. Breaks of lines are marked <br />.
func words(text string) []string {
	text = strings.ToLower(strings.ReplaceAll(text, "<br />", " "))
	fields := strings.FieldsFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
	var out []string
	for _, f := range fields {
		if f = strings.Trim(f, "'"); f != "" {
			out = append(out, f)
		}
	}
	return out
}
