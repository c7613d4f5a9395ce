package report

import (
	"encoding/base64"
	"html/template"
)

// Picture is a drawing that was made elsewhere, as SVG on a ground of its own.
type Picture struct {
	Name string
	SVG  []byte
}

// pictureBudget is how many bytes pictures may take; those that find no room are left out.
const pictureBudget = 120_000

// pictureView is an image of the page.
type pictureView struct {
	Name string
	Data template.URL
}

// picturesOf are images.
func picturesOf(all []Picture) (out []pictureView) {
	size := 0
	for _, p := range all {
		text := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(p.SVG)
		if size+len(text) <= pictureBudget {
			size += len(text)
			out = append(out, pictureView{shown(p.Name), template.URL(text)})
		}
	}
	return out
}
