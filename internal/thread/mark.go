package thread

import "sync"

// marks are texts that recordings have passed, by number.
var marks struct {
	sync.Mutex
	numbers map[string]int64
	texts   []string
}

// MarkSize is the first size of the empty tensor, [MarkSize, 0, number], that is made where a recording passes a mark:
// an operation that any recording has, and no model makes.
const MarkSize = 7243198065

// Mark is the number of a text.
func Mark(text string) int64 {
	marks.Lock()
	defer marks.Unlock()
	n, ok := marks.numbers[text]
	if !ok {
		if marks.numbers == nil {
			marks.numbers = map[string]int64{}
		}
		n = int64(len(marks.texts))
		marks.numbers[text], marks.texts = n, append(marks.texts, text)
	}
	return n
}

// Marked is the text of a number, "" for none.
func Marked(n int64) string {
	marks.Lock()
	defer marks.Unlock()
	if n < 0 || n >= int64(len(marks.texts)) {
		return ""
	}
	return marks.texts[n]
}
