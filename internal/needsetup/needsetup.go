// Package needsetup does not compile before Kelvin's set-up has run. It has nothing else, so that nothing else can fail
// before it.
//
// It imports nothing that needs libtorch, so the compiler reaches it at once, and its message names what to do:
//
//	go run github.com/kelvin-ppl/kelvin/cmd/kelvin setup
package needsetup

import "github.com/sugarme/gotch/half"

// Done is a constant that only the copy of gotch made by set-up has. "undefined: half.RunKelvinSetup" means that
// `go run github.com/kelvin-ppl/kelvin/cmd/kelvin setup` has not run in this module.
const Done = half.RunKelvinSetup
