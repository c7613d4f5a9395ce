package posteriors

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// StanName is the name of an element as Stan writes it: indices count from 1.
func StanName(s draws.Site, element int) string {
	if len(s.Shape) == 0 {
		return s.Name
	}
	index := make([]string, len(s.Shape))
	for i := len(s.Shape) - 1; i >= 0; i-- {
		n := int(s.Shape[i])
		index[i], element = fmt.Sprint(element%n+1), element/n
	}
	return s.Name + "[" + strings.Join(index, ",") + "]"
}
