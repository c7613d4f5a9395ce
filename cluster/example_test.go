package cluster_test

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
)

func Example() {
	err := cluster.Register("schools", cluster.Model{})
	fmt.Println(errors.Is(err, infer.ErrConfig))
	// Output: true
}
