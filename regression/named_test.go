package regression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/regression"
)

func TestFamilyNamed(t *testing.T) {
	for _, c := range []struct {
		name, link string
		want       regression.Family
	}{
		{"gaussian", "", regression.Gaussian{}},
		{"bernoulli", "probit", regression.Bernoulli{Link: "probit"}},
		{"negbinomial", "log", regression.NegativeBinomial{}},
		{"categorical", "", regression.Categorical{}},
		{"zero_inflated_poisson", "", regression.ZeroInflated{Of: regression.Poisson{}}},
	} {
		got, err := regression.FamilyNamed(c.name, c.link)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, c := range [][3]string{
		{"normal", "", "the families are acat, bernoulli, beta, "},
		{"gamma", "logit", `its links are ["log"]`},
		{"poisson", "logit", `its links are ["log" "identity"]`},
		{"zero_inflated_gamma", "", "ZeroInflated is of Poisson"},
		{"zero_inflated_zero_inflated_poisson", "", "the families are"},
	} {
		_, err := regression.FamilyNamed(c[0], c[1])
		require.ErrorContains(t, err, c[2])
	}
}
