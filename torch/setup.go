package torch

import "github.com/kelvin-ppl/kelvin/internal/needsetup"

// Where the compiler stops in needsetup, set-up has not run: see its documentation.
const _ = needsetup.Done
