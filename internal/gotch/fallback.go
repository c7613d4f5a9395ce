package gotch

// fallback is the body of a common operation for a libtorch in which it has another signature.
type fallback struct {
	op   string
	body string
}

const (
	dims = `dim_data == nullptr ? c10::nullopt : c10::optional<torch::IntArrayRef>(torch::IntArrayRef(dim_data, dim_len))`
	// As an optional: a plain number would be taken for the flag of another overload.
	whole     = `, c10::optional<int64_t>(kelvin_whole(correction))`
	oldStdArg = `(*self, ` + dims + whole + `, (bool)keepdim);`
	one       = ` out__[0] = new torch::Tensor(outputs__);`
	two       = ` out__[0] = new torch::Tensor(std::get<0>(outputs__));` +
		` out__[1] = new torch::Tensor(std::get<1>(outputs__));`
	// Sizes of one go, from the last dimension to the first so that the others keep their numbers.
	squeezed = `at::Tensor outputs__ = *self; std::vector<int64_t> ds(dim_data, dim_data + dim_len);
    for (auto &d : ds) if (d < 0) d += self->dim();
    std::sort(ds.begin(), ds.end(), std::greater<int64_t>());
    for (auto d : ds) outputs__ = outputs__.squeeze(d);`
)

// fallbacks: the correction of std and var was an integer before libtorch 2.0; squeeze took one dimension; to_dense had
// no masked gradient; attention was not an operation of its own.
var fallbacks = []fallback{
	{"atg_std_correction", `auto outputs__ = torch::std` + oldStdArg + one},
	{"atg_var_correction", `auto outputs__ = torch::var` + oldStdArg + one},
	{"atg_std_mean_correction", `auto outputs__ = torch::std_mean` + oldStdArg + two},
	{"atg_var_mean_correction", `auto outputs__ = torch::var_mean` + oldStdArg + two},
	{"atg_std_correction_out", `auto outputs__ = torch::std_out(*out, *self, ` + dims + whole + `, (bool)keepdim);` + one},
	{"atg_var_correction_out", `auto outputs__ = torch::var_out(*out, *self, ` + dims + whole + `, (bool)keepdim);` + one},
	{"atg_squeeze_dims", squeezed + one},
	{"atg_squeeze_dims_", `std::vector<int64_t> ds(dim_data, dim_data + dim_len);
    for (auto &d : ds) if (d < 0) d += self->dim();
    std::sort(ds.begin(), ds.end(), std::greater<int64_t>());
    for (auto d : ds) self->squeeze_(d);
    auto outputs__ = *self;` + one},
	{"atg_squeeze_copy_dims", squeezed + ` outputs__ = outputs__.clone();` + one},
	{"atg_to_dense", `auto outputs__ = self->to_dense(dtype < 0 ? c10::nullopt : ` +
		`c10::optional<at::ScalarType>(kelvin_type(dtype)));` + one},
	{"atg_scaled_dot_product_attention", `
    double s = scale_null ? 1.0 / std::sqrt(static_cast<double>(query->size(-1))) : scale_v;
    auto scores = torch::matmul(*query, key->transpose(-2, -1)) * s;
    if (is_causal) {
      auto keep = torch::ones({query->size(-2), key->size(-2)}, query->options().dtype(torch::kBool)).tril();
      scores = scores.masked_fill(keep.logical_not(), -std::numeric_limits<double>::infinity());
    }
    if (attn_mask && attn_mask->defined())
      scores = attn_mask->scalar_type() == torch::kBool
                   ? scores.masked_fill(attn_mask->logical_not(), -std::numeric_limits<double>::infinity())
                   : scores + *attn_mask;
    auto weights = torch::dropout(torch::softmax(scores, -1), dropout_p, dropout_p > 0);
    auto outputs__ = torch::matmul(weights, *value);` + one},
}

func fallbackFor(op string) (string, bool) {
	for _, f := range fallbacks {
		if f.op == op {
			return f.body, true
		}
	}
	return "", false
}
