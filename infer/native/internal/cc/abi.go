package cc

import _ "embed"

// Header is the text of abi.h. Emitted C contains it, so that it needs no files besides itself.
//
//go:embed abi.h
var Header string

// Version is KELVIN_ABI of abi.h.
const Version = 3
