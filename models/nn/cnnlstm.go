package nn

// CNNLSTM classifies texts: an embedding, filters over neighbouring words with ReLU and max-pooling, an LSTM over what
// they found, and a linear layer from its last hidden state to logits, the network for the IMDB reviews in Wenzel et
// al. 2020 (How good is the Bayes posterior in deep neural networks really?), after an example of Keras. Inputs are
// int64 tokens, [n, Length].
//
// With all defaults it has 2 700 098 parameters, with Hidden 70, as in Wenzel et al., 2 638 966: the LSTM has one bias,
// as in Keras. With TwoBiases, as in PyTorch, it has 4 Hidden more.
type CNNLSTM struct {
	Vocab     int // number of different tokens; 0 means 20000
	Length    int // tokens of a text; 0 means 100
	Embedding int // size of an embedding; 0 means 128
	Filters   int // 0 means 64
	Kernel    int // words that a filter sees; 0 means 5
	Pool      int // 0 means 4
	Hidden    int // size of the LSTM; 0 means 128
	Classes   int // 0 means 2
	TwoBiases bool
}

// Build checks the sizes. The layers are called "1_embedding", "2_conv", "3_lstm" and "4_output".
func (c CNNLSTM) Build() (*Network, error) {
	for _, f := range []struct {
		field string
		value int
	}{{"Vocab", c.Vocab}, {"Length", c.Length}, {"Embedding", c.Embedding}, {"Filters", c.Filters}, {"Kernel", c.Kernel},
		{"Pool", c.Pool}, {"Hidden", c.Hidden}, {"Classes", c.Classes}} {
		if err := least("CNNLSTM", f.field, f.value, 0); err != nil {
			return nil, err
		}
	}
	return Sequential{
		Named("1_embedding", Embedding{Num: or(c.Vocab, 20000), Dim: or(c.Embedding, 128)}),
		Transpose{},
		Named("2_conv", Conv1d{Out: or(c.Filters, 64), Kernel: or(c.Kernel, 5)}),
		ReLU{},
		MaxPool1d{Kernel: or(c.Pool, 4)},
		Transpose{},
		Named("3_lstm", LSTM{Hidden: or(c.Hidden, 128), OneBias: !c.TwoBiases}),
		Named("4_output", Linear{Out: or(c.Classes, 2)}),
	}.Build(or(c.Length, 100))
}
