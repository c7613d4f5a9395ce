package report

import (
	"bytes"
	"strings"
	"testing"
)

// Pictures are images inside the page, as many as have room.
func TestPictures(t *testing.T) {
	large := bytes.Repeat([]byte("<svg/>"), pictureBudget/6)
	small := []byte("<svg/>")
	text := render(t, "pictures", funnel(t, 2, 50), Options{Pictures: []Picture{{"age", small}, {"big", large},
		{"x<y", small}}})
	for _, want := range []string{`href="#effects"`, `alt="effect of age"`, `alt="effect of x&lt;y"`,
		"data:image/svg&#43;xml;base64,PHN2Zy8&#43;"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if strings.Contains(text, "effect of big") {
		t.Error("a picture that is too large is in the page")
	}
}
