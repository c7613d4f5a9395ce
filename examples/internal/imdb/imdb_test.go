package imdb

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	tokens := make([]byte, 2*2*Length)
	tokens[2*Length-2], tokens[2*Length-1] = 0x1F, 0x4E // 0x4E1F = 19999, the last word of the first review
	tokensPath, labelsPath := filepath.Join(dir, "train_tokens_u16le_2x100.gz"), filepath.Join(dir,
		"train_labels_u8_2.gz")
	write(t, tokensPath, packed(t, tokens))
	write(t, labelsPath, packed(t, []byte{0, 1}))
	d, err := readTokens(dir, "train", 2)
	require.NoError(t, err)
	require.Len(t, d.Tokens, 2*Length)
	assert.Equal(t, 19999, d.Tokens[Length-1])
	assert.Equal(t, []int{0, 1}, d.Labels)

	write(t, labelsPath, packed(t, []byte{0, 2}))
	_, err = readTokens(dir, "train", 2)
	require.ErrorContains(t, err, "label 1 in "+labelsPath+" is 2: expected 0 or 1")
	tokens[2*Length-2] = 0x20
	write(t, tokensPath, packed(t, tokens))
	_, err = readTokens(dir, "train", 2)
	require.ErrorContains(t, err, "word 99 of review 0 in "+tokensPath+" is 20000: expected tokens from 0 to 19999")
	write(t, tokensPath, packed(t, tokens[1:]))
	_, err = readTokens(dir, "train", 2)
	require.ErrorContains(t, err, tokensPath+" has 399 bytes, 1 whole reviews: expected 400 bytes, 2 reviews of 200")
	write(t, tokensPath, packed(t, append(tokens, 0)))
	_, err = readTokens(dir, "train", 2)
	require.ErrorContains(t, err, tokensPath+" has more than 400 bytes: expected 400 bytes, 2 reviews of 200")
	write(t, tokensPath, tokens)
	_, err = readTokens(dir, "train", 2)
	require.ErrorContains(t, err, tokensPath+" is no file of gzip: gzip")
}

// A file that a download left incomplete says so: how much of it is there, and how much should be.
func TestCutTokenFiles(t *testing.T) {
	const n = 50
	dir := t.TempDir()
	tokens := make([]byte, 2*n*Length)
	random := rand.New(rand.NewPCG(1, 1)) // so that half of the file is about half of the data
	for i := 0; i < len(tokens); i += 2 {
		binary.LittleEndian.PutUint16(tokens[i:], uint16(random.IntN(Words)))
	}
	path := filepath.Join(dir, "train_tokens_u16le_50x100.gz")
	whole := packed(t, tokens)
	cut := func(size int) string {
		write(t, path, whole[:size])
		_, err := readTokens(dir, "train", n)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, ": expected 10000 bytes, 50 reviews of 200: unexpected EOF")
		return err.Error()
	}
	var bytes, records int
	_, err := fmt.Sscanf(cut(len(whole) / 2)[len("imdb: "+path):], " is cut: it ends after %d bytes, %d whole "+
		"reviews", &bytes,
		&records)
	require.NoError(t, err)
	require.Equal(t, bytes/200, records)
	require.Less(t, records, n)
	require.Contains(t, cut(len(whole)-3), path+" is cut: it ends after 10000 bytes, 50 whole reviews")
	require.Contains(t, cut(5), path+" is cut: it ends before its first byte of data")
	write(t, path, nil)
	_, err = readTokens(dir, "train", n)
	require.ErrorContains(t, err, path+" is cut: it ends before its first byte of data: expected 10000 bytes")

	changed := slices.Clone(whole)
	changed[len(changed)-8] ^= 1 // of the checksum
	write(t, path, changed)
	_, err = readTokens(dir, "train", n)
	require.ErrorContains(t, err, path+" is damaged after 10000 bytes, 50 whole reviews: expected 10000 bytes")

	write(t, path, whole)
	labels := filepath.Join(dir, "train_labels_u8_50.gz")
	write(t, labels, packed(t, make([]byte, n))[:20])
	_, err = readTokens(dir, "train", n)
	require.ErrorContains(t, err, labels+" is cut: it ends after ")
	require.ErrorContains(t, err, " whole reviews: expected 50 bytes, 50 reviews of 1: unexpected EOF")
}

// Where files are missing the error has both layouts, and names the folder that has one of them.
func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	layout := "expected a folder such as the archive's aclImdb, with a review in each .txt of train/pos, train/neg, " +
		"test/pos and test/neg; or one with the token files train_tokens_u16le_25000x100.gz, train_labels_u8_25000.gz, " +
		"test_tokens_u16le_25000x100.gz and test_labels_u8_25000.gz"
	for _, at := range []string{dir, filepath.Join(dir, "none")} {
		_, _, err := Read(at)
		require.ErrorContains(t, err, layout)
		require.ErrorContains(t, err, filepath.Join(at, "train_tokens_u16le_25000x100.gz"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	within := filepath.Join(dir, "aclImdb")
	write(t, filepath.Join(within, "train/neg/0_1.txt"), []byte("bad"))
	_, _, err := Read(dir)
	require.ErrorContains(t, err, layout+"; "+within+" has it")
	_, _, err = Read(within)
	require.ErrorContains(t, err, filepath.Join(within, "train", "pos"))
	require.ErrorContains(t, err, layout)
}

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"train/neg/0_1.txt": "Bad, BAD film.<br /><br />It isn't good!", "train/pos/0_9.txt": "'Good' film; good.",
		"test/neg/0_2.txt": "bad film", "test/pos/0_8.txt": "a good  film", "train/pos/note.md": "not a review",
	} {
		write(t, filepath.Join(dir, path), []byte(text))
	}
	train, test, err := Read(dir)
	require.NoError(t, err)
	// good 3, bad and film 2, isn't and it 1: tokens 2 to 6.
	tail := func(d Data, i, n int) []int { return d.Tokens[(i+1)*Length-n : (i+1)*Length] }
	assert.Equal(t, []int{0, 3, 3, 4, 6, 5, 2}, tail(train, 0, 7))
	assert.Equal(t, []int{0, 2, 4, 2}, tail(train, 1, 4))
	assert.Equal(t, []int{0, 3, 4}, tail(test, 0, 3))
	assert.Equal(t, []int{0, 1, 2, 4}, tail(test, 1, 4), "a word that training does not have is 1")
	assert.Equal(t, []int{0, 1}, train.Labels)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "test", "pos")))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, filepath.Join(dir, "test", "pos"))
	require.ErrorContains(t, err, "train/pos, train/neg, test/pos and test/neg")
}

func TestShuffledAndSynthetic(t *testing.T) {
	d := Synthetic(40, 3)
	require.Equal(t, d, Synthetic(40, 3))
	s, err := d.Shuffled(30, 1)
	require.NoError(t, err)
	require.Equal(t, 30, s.Len())
	positive := 0
	for i, label := range s.Labels {
		positive += label
		says := 0
		for _, token := range s.Tokens[i*Length : (i+1)*Length] {
			require.True(t, token >= 0 && token < Words)
			if token >= 2 && token < 102 {
				require.Equal(t, label, (token-2)/50, "a word of its class")
				says++
			}
		}
		require.True(t, says >= 6 && says <= 12)
	}
	assert.Greater(t, positive, 5)
	_, err = d.Shuffled(41, 1)
	require.ErrorContains(t, err, "41 reviews: expected from 1 to the 40")
}
