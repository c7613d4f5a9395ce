// Package docs_test keeps the code in the documents equal to code that is compiled.
package docs_test

import (
	"os"
	"strings"
	"testing"
)

// TestBlocks finds every Go block of a document in the program that the document says it is from.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		doc     string
		block   int // -1: all
		program string
	}{
		{"tutorial.md", -1, "../examples/tutorial/main.go"},
		{"language.md", -1, "../examples/language/main.go"},
		{"hmc.md", -1, "../infer/hmc/example_test.go"},
		{"../README.md", 0, "../examples/logistic/model.go"},
	} {
		text, err := os.ReadFile(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(c.program)
		if err != nil {
			t.Fatal(err)
		}
		found := blocks(string(text))
		if len(found) == 0 {
			t.Errorf("%s has no Go block", c.doc)
		}
		for i, b := range found {
			if (c.block < 0 || c.block == i) && !strings.Contains(string(program), b) {
				t.Errorf("%s, block %d is not in %s:\n%s", c.doc, i, c.program, b)
			}
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
