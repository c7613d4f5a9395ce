package ir

import "golang.org/x/sys/cpu"

// fastest has the kernels that this processor can run.
func fastest() (k kernels) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return k
	}
	for op, f := range map[Op]func(d, a *float64, n int){Neg: negAVX2, Abs: absAVX2, Sqrt: sqrtAVX2, Exp: expAVX2,
		Expm1: expm1AVX2, Log: logAVX2, Log1p: log1pAVX2} {
		k.one[op] = f
	}
	for op, f := range map[Op]func(d, a, b *float64, as, bs, n int){Add: addAVX2, Sub: subAVX2, Mul: mulAVX2, Div: divAVX2,
		Min: minAVX2, Max: maxAVX2, Lt: ltAVX2, Le: leAVX2, Eq: eqAVX2, Ne: neAVX2} {
		k.two[op] = f
	}
	k.mulAdd, k.choose, k.sum, k.dot = mulAddAVX2, chooseAVX2, sumAVX2, dotAVX2
	return k
}
