package torch_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// used makes a tensor of so many MiB whose every page was written.
func used(mib int) torch.Tensor {
	return torch.Of(torch.Must(ts.Ones([]int64{int64(mib << 17)}, gotch.Double, gotch.CPU)))
}

// minorFaults are the pages that were made for this process.
func minorFaults(t *testing.T) int {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return int(u.Minflt)
}

// A large block that was given back is the next tensor's of about its size: it has no pages to be made. Blocks of 64
// MiB are more than the C library ever keeps.
func TestLargeBlocksAreUsedAgain(t *testing.T) {
	testkit.Resident(t) // skips where the system is another
	torch.Free(used(64))
	before := minorFaults(t)
	for i := range 20 {
		x := used(64 - i%4)
		assert.Equal(t, 1.0, torch.Of(x.T().MustMean(gotch.Double, false)).Item())
		torch.Free(x)
	}
	assert.Less(t, minorFaults(t)-before, int(64<<8), "20 blocks have 20 times as many pages")
}

// Of kept blocks of one size a tensor gets the one that was given back last: that one is the most likely to be in a
// cache, and a loop that needs two of them does not go through all.
func TestLastBlockIsUsedFirst(t *testing.T) {
	testkit.Resident(t) // skips where the system is another
	at := func(x torch.Tensor) unsafe.Pointer { return torch.Must(ts.KelvinData(x.T(), int(gotch.Double.CInt()))) }
	blocks := make([]torch.Tensor, 4)
	places := make([]unsafe.Pointer, len(blocks))
	for i := range blocks {
		blocks[i] = used(3)
		places[i] = at(blocks[i])
	}
	torch.Free(blocks...)
	for i := range blocks {
		blocks[i] = used(3)
		assert.Equal(t, places[len(places)-1-i], at(blocks[i]), "tensor %d", i)
	}
	torch.Free(blocks...)
}

// What is kept and what is in use are together at most a quarter more than what was in use at once, or 32 MiB more; and
// what nobody uses is given back within some seconds.
func TestLargeBlocksAreGivenBack(t *testing.T) {
	before := testkit.Resident(t)
	// Each of these is too large to use the last one's block.
	for mib := 64; mib < 200; mib = mib * 6 / 5 {
		torch.Free(used(mib))
		testkit.Grown(t, before, (mib*5/4+32)<<20, "%d MiB in use at once", mib)
	}
	small := make([]torch.Tensor, 8)
	for i := range small {
		small[i] = used(20)
	}
	testkit.Grown(t, before, 272<<20, "192 MiB in use at once")
	torch.Free(small...)
	assert.Eventually(t, func() bool { return testkit.Resident(t)-before < 32<<20 }, 20*time.Second, 100*time.Millisecond)
}

// A program of several sizes, of which few are in use at once, makes none of its blocks twice, as long as they are
// within 32 MiB.
func TestBlocksOfOtherSizesAreKept(t *testing.T) {
	before := testkit.Resident(t)
	turn := func() {
		for mib := 1; mib <= 6; mib++ { // 21 MiB, at most 6 in use at once
			torch.Free(used(mib))
		}
	}
	turn()
	faults := minorFaults(t)
	for range 100 {
		turn()
	}
	assert.Less(t, minorFaults(t)-faults, int(21<<8), "100 turns have 100 times as many pages")
	testkit.Grown(t, before, (6+32+16)<<20, "6 MiB in use at once")
}

// A small block is the thread's next one of its size, in steps of 64 bytes, wherever a tensor asks for it.
func TestSmallBlocksAreUsedAgain(t *testing.T) {
	testkit.Resident(t) // skips where the system is another
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	at := func(n int) unsafe.Pointer {
		x := torch.Must(ts.Ones([]int64{int64(n)}, gotch.Double, gotch.CPU))
		defer torch.Free(torch.Of(x))
		return torch.Must(x.DataPtr())
	}
	for _, n := range []int{1, 8, 100, 1024} {
		last := at(n)
		require.Equal(t, last, at(n), "%d numbers", n)
		require.Equal(t, last, at((n+7)/8*8), "%d numbers", n)
		require.NotEqual(t, last, at((n+7)/8*8+1), "%d numbers", n)
	}
}

// So it is with a block of every size: where sizes grow by an eighth, and where blocks begin to be kept for all
// threads.
func TestBlocksOfEverySizeAreUsedAgain(t *testing.T) {
	before := testkit.Resident(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	at := func(n int) unsafe.Pointer {
		x := torch.Must(ts.Ones([]int64{int64(n)}, gotch.Double, gotch.CPU))
		defer torch.Free(torch.Of(x))
		return torch.Must(x.DataPtr())
	}
	for _, n := range []int{1025, 1152, 1153, 5000, 30720, 30721, 32000, 32767, 32768, 33000, 100_000} {
		last := at(n)
		for range 1000 {
			require.Equal(t, last, at(n), "%d numbers", n)
		}
	}
	testkit.Grown(t, before, 32<<20, "one block at a time")
}

// Small blocks of many sizes do not add up, nor do those of threads that are gone, nor those that one thread makes and
// another gives back: each part makes nearly 200 MiB.
func TestSmallBlocksAreGivenBack(t *testing.T) {
	const most = (32 + 3*4) << 20 // three threads keep up to 4 MiB each: this one, the last that ended, the next
	before := testkit.Resident(t)
	most2MiB := func(numbers int) []torch.Tensor {
		list := make([]torch.Tensor, min(1<<18/numbers, 4096))
		for i := range list {
			list[i] = torch.Of(torch.Must(ts.Ones([]int64{int64(numbers)}, gotch.Double, gotch.CPU)))
		}
		return list
	}
	for i := range 100 {
		torch.Free(most2MiB(1 + i*10)...)
	}
	testkit.Grown(t, before, most, "one thread")
	on := func(work func()) { // a thread that ends
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked
			work()
		}()
		<-done
	}
	for range 100 {
		on(func() { torch.Free(most2MiB(200)...) })
	}
	testkit.Grown(t, before, most, "threads that are gone")
	for range 100 {
		var list []torch.Tensor
		on(func() { list = most2MiB(300) })
		torch.Free(list...)
	}
	testkit.Grown(t, before, most, "made on another thread")
}
