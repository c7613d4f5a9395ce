package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCSVColumns(t *testing.T) {
	names, source := columnsOf(placedSites(t, "mu", []int{}, "a.b", []int{2, 3}, "a_b", []int{1}, "end__",
		[]int{}), []string{"divergent", "mine", "lp"})
	assert.Equal(t, strings.Split("lp__,divergent__,mine__,mu,a_b_2.1.1,"+
		"a_b_2.2.1,a_b_2.1.2,a_b_2.2.2,a_b_2.1.3,a_b_2.2.3,a_b.1,end__p", ","), names)
	assert.Equal(t, []int{11, 9, 10, 0, 1, 4, 2, 5, 3, 6, 7, 8}, source)
}
