// A module of its own, so that Kelvin does not depend on what writes its assembly.
module github.com/kelvin-ppl/kelvin/infer/native/internal/ir/gen

go 1.25.0

require github.com/mmcloughlin/avo v0.6.0

require (
	golang.org/x/mod v0.37.0 // indirect
	golang.org/x/sync v0.21.0 // indirect
	golang.org/x/tools v0.47.0 // indirect
)
