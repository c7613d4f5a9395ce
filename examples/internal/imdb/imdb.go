// Package imdb reads the reviews of films of Maas et al. 2011 (Large Movie Review Dataset,
// ai.stanford.edu/~amaas/data/sentiment), 25,000 to train with and 25,000 to test, for the examples. The repository
// carries none of them. A user names the folder of the archive, with train/pos, train/neg, test/pos and test/neg, or
// one of token files:
//
//	train_tokens_u16le_25000x100.gz, train_labels_u8_25000.gz, test_tokens_..., test_labels_...
//
// A review is the last 100 of its words, with 0 before them where it is shorter; 1 is a word outside the vocabulary,
// and the others, from 2, are the 19,998 most frequent words of the training reviews.
package imdb

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// The size of the data.
const (
	Length  = 100   // words of a review
	Words   = 20000 // different tokens
	Classes = 2
	reviews = 25000 // of each part
)

// Data are reviews, and whether they are positive.
type Data struct {
	Tokens []int // of one review after the other, [n · Length]
	Labels []int // 1 is positive, [n]
}

// Part are the reviews from one to before another.
func (d Data) Part(from, to int) Data {
	return Data{Tokens: d.Tokens[from*Length : to*Length], Labels: d.Labels[from:to]}
}

// Len is the number of reviews.
func (d Data) Len() int { return len(d.Labels) }

// Read reads the training and the test reviews from the files in dir.
func Read(dir string) (train, test Data, err error) {
	for _, folder := range folders {
		if info, err := os.Stat(filepath.Join(dir, folder)); err == nil && info.IsDir() {
			return readTexts(dir)
		}
	}
	if train, err = readTokens(dir, "train", reviews); err == nil {
		test, err = readTokens(dir, "test", reviews)
	}
	return train, test, err
}

// folders are those of the archive's texts.
var folders = []string{"train/neg", "train/pos", "test/neg", "test/pos"}

// missing is the error of a file or folder that is not there: it says what has to be.
func missing(dir string, err error) error {
	hint := ""
	if info, err := os.Stat(filepath.Join(dir, "aclImdb", "train")); err == nil && info.IsDir() {
		hint = fmt.Sprintf("; %s has it", filepath.Join(dir, "aclImdb"))
	}
	return fmt.Errorf("imdb: %w: expected a folder such as the archive's aclImdb, with a review in each .txt of "+
		"train/pos, "+
		"train/neg, test/pos and test/neg; or one with the token files train_tokens_u16le_%[2]dx%[3]d.gz, "+
		"train_labels_u8_%[2]d.gz, test_tokens_u16le_%[2]dx%[3]d.gz and test_labels_u8_%[2]d.gz%[4]s", err, reviews, Length,
		hint)
}

// readTokens reads n reviews of a part from its two files.
func readTokens(dir, part string, n int) (Data, error) {
	name := fmt.Sprintf("%s_tokens_u16le_%dx%d.gz", part, n, Length)
	raw, err := unpacked(dir, name, n, 2*Length)
	if err != nil {
		return Data{}, err
	}
	labelsName := fmt.Sprintf("%s_labels_u8_%d.gz", part, n)
	labels, err := unpacked(dir, labelsName, n, 1)
	if err != nil {
		return Data{}, err
	}
	d := Data{Tokens: make([]int, n*Length), Labels: make([]int, n)}
	for i := range d.Tokens {
		if d.Tokens[i] = int(binary.LittleEndian.Uint16(raw[2*i:])); d.Tokens[i] >= Words {
			return Data{}, fmt.Errorf("imdb: word %d of review %d in %s is %d: expected tokens from 0 to %d",
				i%Length, i/Length,
				filepath.Join(dir, name), d.Tokens[i], Words-1)
		}
	}
	for i, v := range labels {
		if d.Labels[i] = int(v); v >= Classes {
			return Data{}, fmt.Errorf("imdb: label %d in %s is %d: expected 0 or 1", i, filepath.Join(dir,
				labelsName), v)
		}
	}
	return d, nil
}

// unpacked reads a compressed file of n records, of so many bytes each.
func unpacked(dir, name string, n, each int) ([]byte, error) {
	path, size := filepath.Join(dir, name), n*each
	f, err := os.Open(path)
	if err != nil {
		return nil, missing(dir, err)
	}
	defer func() { _ = f.Close() }()
	expected := fmt.Sprintf("expected %d bytes, %d reviews of %d", size, n, each)
	z, err := gzip.NewReader(f)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("imdb: %s is cut: it ends before its first byte of data: %s: %w", path, expected, err)
	}
	if err != nil {
		return nil, fmt.Errorf("imdb: %s is no file of gzip: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, int64(size+1)))
	read := fmt.Sprintf("%d bytes, %d whole reviews", len(data), len(data)/each)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("imdb: %s is cut: it ends after %s: %s: %w", path, read, expected, err)
	case err != nil:
		return nil, fmt.Errorf("imdb: %s is damaged after %s: %s: %w", path, read, expected, err)
	case len(data) > size:
		return nil, fmt.Errorf("imdb: %s has more than %d bytes: %s", path, size, expected)
	case len(data) < size:
		return nil, fmt.Errorf("imdb: %s has %s: %s", path, read, expected)
	}
	return data, nil
}

// Shuffled is n of the reviews in a random order of the seed. The files have them in order of class.
func (d Data) Shuffled(n int, seed uint64) (Data, error) {
	if n < 1 || n > d.Len() {
		return Data{}, fmt.Errorf("imdb: %d reviews: expected from 1 to the %d that there are", n, d.Len())
	}
	var s Data
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(d.Len())[:n] {
		s.Tokens = append(s.Tokens, d.Tokens[i*Length:(i+1)*Length]...)
		s.Labels = append(s.Labels, d.Labels[i])
	}
	return s, nil
}

// Synthetic makes n reviews without data, to try things out: words are random, and each review has up to twelve words
// of the hundred that say what its class is. Half of them are positive.
func Synthetic(n int, seed uint64) Data {
	random := rand.New(rand.NewPCG(seed, 1))
	d := Data{Tokens: make([]int, n*Length), Labels: make([]int, n)}
	for i := range n {
		d.Labels[i] = i % 2
		review := d.Tokens[i*Length : (i+1)*Length]
		for j := 20 + random.IntN(40); j < Length; j++ {
			review[j] = int(200 + random.Int64N(800))
		}
		for range 12 {
			review[60+random.IntN(40)] = 2 + 50*d.Labels[i] + int(random.Int64N(50))
		}
	}
	return d
}
