package lower

import (
	"strings"

	"github.com/sugarme/gotch/record"
)

// shorten takes the calls that views make out of the words of a recording, in place, and numbers the others anew: a
// view is all that its result says, and of a long loop such calls are most of the words.
func shorten(words []int64, bytes []byte) []int64 {
	r := &reader{words: words, bytes: bytes, texts: map[string]string{}}
	type call struct {
		number, end int // anew; where its arguments end in what is left
		view        bool
		of          [2]int64 // storage and type of its first argument
	}
	var calls []call
	out, count := words[:0], 0
	for r.at < len(words) {
		from := r.at
		switch r.next() {
		case record.Begin:
			if parent := r.next(); parent >= 0 {
				words[from+1] = int64(calls[parent].number)
			}
			r.at++
			c := call{number: count, view: views[strings.TrimPrefix(r.text(), "aten::")]}
			r.at += 2
			n := r.next()
			if c.view = c.view && n > 0 && words[r.at] == record.Tensor; c.view {
				c.of = [2]int64{words[r.at+1], words[r.at+3]}
			}
			r.skip(n, nil)
			c.end = len(out) + r.at - from
			calls = append(calls, c)
			count++
		case record.End:
			c := calls[r.next()]
			words[from+1] = int64(c.number)
			results, others := 0, 0
			r.skip(r.next(), func(storage, type_ int64) {
				if results++; c.of != [2]int64{storage, type_} {
					others++
				}
			})
			if c.view && results > 0 && others == 0 {
				out, count = out[:c.end], c.number+1
			}
		case record.Storage:
			r.at += 5
		default:
			r.skip(1, nil)
		}
		out = append(out, words[from:r.at]...)
	}
	return out
}

// skip goes past n values. The function, if there is one, sees the storage and the type of each tensor in them.
func (r *reader) skip(n int, see func(storage, type_ int64)) {
	for range n {
		switch r.next() {
		case record.None, record.Undefined:
		case record.Int, record.Double, record.Bool:
			r.at++
		case record.Tensor:
			if see != nil {
				see(r.words[r.at], r.words[r.at+2])
			}
			r.at += 5
			r.at += 1 + 2*int(r.words[r.at])
		case record.List:
			r.skip(r.next(), see)
		default:
			r.at += 2 // a text
		}
	}
}
