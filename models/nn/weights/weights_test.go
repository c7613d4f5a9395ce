package weights_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/models/nn/safetensors"
	"github.com/kelvin-ppl/kelvin/models/nn/weights"
	"github.com/kelvin-ppl/kelvin/torch"
)

func mlp(t *testing.T) *nn.Network {
	return nntest.Build(t, nn.Sequential{nn.Named("a", nn.Linear{Out: 4}), nn.Tanh{}, nn.Named("b",
		nn.Linear{Out: 2})}, 3)
}

// torchNames are those of a PyTorch model.
var torchNames = weights.Names{Tensor: func(site string) string {
	return "model." + strings.Replace(site, "a.", "0.",
		1)
}}

// What is saved is loaded with the same bits, in both types and under other names.
func TestSaveAndLoad(t *testing.T) {
	n, path := mlp(t), filepath.Join(t.TempDir(), "w.safetensors")
	p := nntest.Point(n, 1, 1, 0)
	for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
		at := nntest.Must(p.To(gotch.CPU, dtype))
		require.NoError(t, weights.Save(path, at, torchNames, map[string]string{"format": "pt"}))
		back, err := weights.Load(path, nntest.Must(infer.Zeros(n.Layout())), torchNames)
		require.NoError(t, err)
		require.Equal(t, nntest.Values(at.Flat), nntest.Values(back.Flat))
	}
	f := nntest.Must(safetensors.Open(path))
	defer func() { require.NoError(t, f.Close()) }()
	var names []string
	for _, tensor := range f.Tensors() {
		names = append(names, tensor.Name+" "+tensor.DType)
	}
	require.ElementsMatch(t, []string{"model.0.weight F32", "model.0.bias F32", "model.b.weight F32",
		"model.b.bias F32"},
		names)
}

// Some sites are loaded and held by infer.Subspace, the others keep the start and are what is left to infer.
func TestLoadAndFreeze(t *testing.T) {
	n, path := mlp(t), filepath.Join(t.TempDir(), "w.safetensors")
	features := weights.Names{Tensor: func(site string) string {
		if strings.HasPrefix(site, "a.") {
			return site
		}
		return ""
	}}
	theirs, start := nntest.Point(n, 1, 1, 0), nntest.Point(n, 2, 1, 0)
	require.NoError(t, weights.Save(path, theirs, features, nil))
	p, err := weights.Load(path, start, features)
	require.NoError(t, err)
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return n.Forward(p, b.Get("x")).Square().Sum(), nil
	}
	restricted, sub, embed, err := infer.Subspace(logPosterior, p, "b.bias", "b.weight")
	require.NoError(t, err)
	nntest.Do(t, func() {
		x := infer.Batch{"x": nntest.Tensor(nntest.Normals(3, 15), 5, 3)}
		have, _ := restricted(sub, x)
		mixed := nntest.Sites(start)
		for _, name := range []string{"a.weight", "a.bias"} {
			mixed[name] = nntest.Sites(theirs)[name]
		}
		want := 0.0
		for i := range 5 {
			h := nntest.Linear(mixed, "a", nntest.New([]int{3}, nntest.Values(x["x"])[3*i:3*i+3])).Each(math.Tanh)
			for _, y := range nntest.Linear(mixed, "b", h).Data {
				want += y * y
			}
		}
		nntest.CloseTo(t, []float64{want}, nntest.Values(have), 1e-12, "log posterior")
		require.Equal(t, nntest.Values(p.Flat), nntest.Values(nntest.Must(embed(sub)).Flat))
	})
}

func TestLoadErrors(t *testing.T) {
	n, dir := mlp(t), t.TempDir()
	zeros := nntest.Must(infer.Zeros(n.Layout()))
	good := filepath.Join(dir, "good.safetensors")
	require.NoError(t, weights.Save(good, zeros, weights.Names{}, nil))
	write := func(name string, change func(tensors []safetensors.Tensor,
		v map[string][]float64) []safetensors.Tensor) string {
		path := filepath.Join(dir, name)
		var tensors []safetensors.Tensor
		values := map[string][]float64{}
		for _, s := range n.Layout().Sites {
			tensors = append(tensors, safetensors.Tensor{Name: s.Name, DType: "F32", Shape: s.Shape})
			values[s.Name] = make([]float64, s.Size)
		}
		require.NoError(t, safetensors.Write(path, change(tensors, values), values, nil))
		return path
	}
	type list = []safetensors.Tensor
	shape := write("shape", func(t list, _ map[string][]float64) list { t[1].Shape = []int{3, 4}; return t })
	missing := write("missing", func(t list, _ map[string][]float64) list { return t[1:] })
	more := write("more", func(t list, v map[string][]float64) list {
		v["head"] = []float64{1}
		return append(t, safetensors.Tensor{Name: "head", DType: "F32", Shape: []int{1}})
	})
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	cut := filepath.Join(dir, "cut")
	require.NoError(t, os.WriteFile(cut, text[:len(text)-1], 0o600))
	unknown := filepath.Join(dir, "unknown")
	require.NoError(t, os.WriteFile(unknown, []byte(strings.Replace(string(text), "F64", "F99", 1)), 0o600))
	huge := filepath.Join(dir, "huge")
	require.NoError(t, os.WriteFile(huge, append([]byte{0, 0, 0, 0, 0, 0, 0, 0x10}, text[8:]...), 0o600))
	one := weights.Names{Tensor: func(string) string { return "a.bias" }}
	for _, c := range []struct {
		path  string
		names weights.Names
		want  string
	}{
		{shape, weights.Names{}, `tensor "a.weight": its shape is [3 4]: expected [4 3], that of site "a.weight"`},
		{missing, weights.Names{},
			`tensor "a.bias": it is not in the file, and site "a.bias" has shape [4]; the file has`},
		{more, weights.Names{}, `tensor "head": no site has it: expected tensors of the sites ["a.bias"`},
		{good, one, `tensor "a.bias": it is the tensor of the sites "a.bias" and "a.weight": expected one site`},
		{cut, weights.Names{}, `within the 207 of the file`},
		{unknown, weights.Names{}, `its dtype is "F99": expected one of`},
		{huge, weights.Names{}, `its header claims 1152921504606846976 bytes: expected at most`},
		{filepath.Join(dir, "none"), weights.Names{}, "no such file"},
	} {
		_, err := weights.Load(c.path, zeros, c.names)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, c.path)
	}
	_, err = weights.Load(more, zeros, weights.Names{Others: true})
	require.NoError(t, err)

	// A tensor of a type that is not read matters where a site wants it alone.
	other := filepath.Join(dir, "other")
	text, err = os.ReadFile(more)
	require.NoError(t, err)
	retyped := func(name string) {
		at := strings.Index(string(text), `"`+name+`":{`)
		entry := strings.Replace(string(text[at:]), "F32", "U32", 1)
		require.NoError(t, os.WriteFile(other, []byte(string(text[:at])+entry), 0o600))
	}
	retyped("head")
	_, err = weights.Load(other, zeros, weights.Names{Others: true})
	require.NoError(t, err)
	_, err = weights.Load(other, zeros, weights.Names{})
	require.ErrorContains(t, err, `tensor "head": no site has it`)
	retyped("a.weight")
	_, err = weights.Load(other, zeros, weights.Names{Others: true})
	require.ErrorContains(t, err, other+`: tensor "a.weight": its dtype is "U32": expected one of`)

	_, err = weights.Load(good, nntest.Must(zeros.Repeat(2)), weights.Names{})
	require.ErrorIs(t, err, infer.ErrLayout)
	require.ErrorIs(t, weights.Save(good, nntest.Must(zeros.Repeat(2)), weights.Names{}, nil), infer.ErrLayout)
}

// A transformer with adapters on three of its weights: merged and unmerged agree, and both with x W₀ᵀ + (α/r) x Aᵀ Bᵀ
// where the two products are made one after the other.
func TestLoRA(t *testing.T) {
	n := nntest.Must(layers.Transformer{Vocab: 7, Length: 5, Width: 4, Heads: 2, Blocks: 1, Hidden: 6}.Build())
	base := nntest.Point(n, 1, 0.7, 0)
	sites := []string{"block_1.0.body.1.query.weight", "block_1.0.body.1.output.weight", "output.weight"}
	a, err := weights.LoRA{Rank: 2, Alpha: 8, Sites: sites}.Attach(n, base)
	require.NoError(t, err)
	require.Equal(t, 2*(4+4)+2*(4+4)+2*(4+7), a.Layout().Dim())
	nntest.Do(t, func() {
		x := nntest.Must(torch.FromSlice([]int{1, 6, 0, 2, 2}, 5))
		before := nntest.Values(n.Forward(base, x))
		streams := torch.NewStreams(5, 1)
		start := nntest.Must(a.Init(&streams))
		nntest.CloseTo(t, before, nntest.Values(a.Forward(start, x)), 0, "adapters at their start add nothing")

		v := nntest.Normals(7, 3*a.Layout().Dim())
		points := infer.Params{Layout: a.Layout(), Flat: nntest.Tensor(v, 3, a.Layout().Dim())}
		p := nntest.Row(points, 0)
		unmerged := nntest.Values(a.Forward(p, x))
		merged := nntest.Must(a.Merge(p))
		nntest.CloseTo(t, unmerged, nntest.Values(n.Forward(merged, x)), 1e-12, "merged")
		require.NotEqual(t, before, unmerged)

		// The weights themselves, by loops.
		s, own := nntest.Sites(base), nntest.Sites(p)
		for _, name := range sites {
			A, B := own[name+".lora_a"], own[name+".lora_b"]
			w := nntest.New(s[name].Shape, append([]float64{}, s[name].Data...))
			for i := range w.Shape[0] {
				for j := range w.Shape[1] {
					for r := range 2 {
						*w.At(i, j) += 4 * *B.At(i, r) * *A.At(r, j)
					}
				}
			}
			nntest.CloseTo(t, w.Data, nntest.Sites(merged)[name].Data, 1e-12, name)
		}

		// Mapped over three points, values and gradients are those of each.
		f := func(flat torch.Tensor) torch.Tensor {
			return nntest.Score(a.Forward(infer.Params{Layout: a.Layout(), Flat: flat}, x))
		}
		values, grads, err := torch.VmapValueAndGrad(f, points.Flat)
		require.NoError(t, err)
		for i := range 3 {
			value, grad, err := torch.ValueAndGrad(f, nntest.Row(points, i).Flat)
			require.NoError(t, err)
			nntest.CloseTo(t, nntest.Values(value), nntest.Values(values)[i:i+1], 1e-12, "value")
			nntest.CloseTo(t, nntest.Values(grad), nntest.Values(grads.At(i).T()), 1e-12,
				"gradient")
		}
	})
}

// Adapters of rank 0 are the network.
func TestLoRAOfRankZero(t *testing.T) {
	n := mlp(t)
	base := nntest.Point(n, 1, 1, 0)
	a, err := weights.LoRA{Sites: []string{"a.weight"}}.Attach(n, base)
	require.NoError(t, err)
	require.Nil(t, a.Layout())
	nntest.Do(t, func() {
		x := nntest.Tensor(nntest.Normals(2, 12), 4, 3)
		require.Equal(t, nntest.Values(n.Forward(base, x)), nntest.Values(a.Forward(infer.Params{}, x)))
		require.Equal(t, nntest.Values(base.Flat), nntest.Values(nntest.Must(a.Merge(infer.Params{})).Flat))
	})
}

func TestLoRAErrors(t *testing.T) {
	n := mlp(t)
	base := nntest.Point(n, 1, 1, 0)
	for want, l := range map[string]weights.LoRA{
		"weights.LoRA: Rank is 4: it must be from 0 to 3": {Rank: 4, Sites: []string{"a.weight"}},
		"weights.LoRA: Rank is -1":                        {Rank: -1, Sites: []string{"a.weight"}},
		"weights.LoRA: Alpha is NaN":                      {Alpha: math.NaN(), Sites: []string{"a.weight"}},
		"weights.LoRA: Sites is []":                       {Rank: 1},
		`"c.weight"`:                                      {Rank: 1, Sites: []string{"c.weight"}},
		"Sites is a.bias: it has shape [4] and must":      {Rank: 1, Sites: []string{"a.bias"}},
	} {
		_, err := l.Attach(n, base)
		require.ErrorContains(t, err, want)
	}
	_, err := weights.LoRA{Rank: 1, Sites: []string{"a.weight"}}.Attach(nil, base)
	require.ErrorIs(t, err, infer.ErrLayout)
	a, err := weights.LoRA{Rank: 1, Sites: []string{"a.weight"}}.Attach(n, base)
	require.NoError(t, err)
	_, err = a.Merge(base)
	require.ErrorIs(t, err, infer.ErrLayout)
	_, err = a.Init(nil)
	assert.ErrorContains(t, err, "there are no random streams")
}
