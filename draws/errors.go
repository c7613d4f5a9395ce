package draws

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// ErrNoDraws is wrapped by the error of a summary of a container without draws.
var ErrNoDraws = errors.New("no draws")

// ErrUnknownName is wrapped by the error of a site or a statistic that is not there.
var ErrUnknownName = errors.New("unknown name")

// ErrLayout is wrapped by the errors about sites and statistics: a layout that [New] refuses, two layouts that should
// be equal and are not, a CSV header that does not fit.
var ErrLayout = errors.New("wrong layout")

// ErrSize is wrapped by the error of an appended draw with too many or too few numbers.
var ErrSize = errors.New("wrong size")

// ErrRange is wrapped by the error of an argument outside its range: a chain, a draw, a probability, a thinning.
var ErrRange = errors.New("out of range")

func failf(kind error, format string, args ...any) error {
	return sample.Failf("draws", kind, format, args...)
}

// listed writes names for an error message; a long list is cut.
func listed(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}
