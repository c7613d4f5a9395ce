package main

// check is a promise and the tests that hold it.
type check struct {
	name    string
	promise string // of at most 50 characters, so that a row of the table stays narrow
	how     string
	suites  []suite
}

// checks are in the order of the page.
var checks = []check{
	{"resume", "A killed run goes on with the same bits",
		"A process that samples gets SIGKILL at a moment that nothing chose, and starts again, several times. Draws, " +
			"statistics and state are those of a run that was never killed. For the stepper, NUTS, and walks along a path.",
		[]suite{{"./infer ./infer/hmc ./infer/evidence", "^TestResumeAfterKill$", ""}}},
	{"kills", "Stored draws are a prefix, bit for bit",
		"A process that writes or resumes a store gets SIGKILL at a random moment. Resuming Zarr is also stopped before " +
			"each of its changes of the disk, with random numbers of draws to keep. CSV is cut at every byte and resumed.",
		[]suite{{"./store", "Kill|^TestSIGKILL|^TestTornAtEveryByte$", ""}}},
	{"damage", "Damaged files are errors, not numbers",
		"One random bit of a random file is flipped. The reader refuses, or the numbers are the same. Checkpoints are cut " +
			"off as well.",
		[]suite{{"./store ./infer", "^TestFlippedBits$|^TestTruncatedCheckpoint$|^TestDamagedCheckpoint$", ""}}},
	{"hostile", "Files get memory for the bytes they have",
		"Files of some hundred bytes ask for GB by shapes without chunks, wide text, and chunks of zeros.",
		[]suite{{"./store", "^TestFilesThatAskForTooMuch$", ""}}},
	{"fuzz", "Any bytes are read or are an error, in 512 MB",
		"Go's fuzzer makes 100,000 files for each of the readers of draws (CSV, JSON, Zarr), data (CSV, .npy, designs), " +
			"checkpoints and safetensors, in processes that may take 512 MB. What a reader of draws takes is written and " +
			"read again, alike.",
		[]suite{{"./store ./draws ./data/... ./infer ./infer/native/portable ./models/nn/safetensors", "^TestFuzz", ""}}},
	{"misuse", "Wrong arguments are errors",
		"Every public function and method is called with one argument after the other nil, negative, huge, not a number, " +
			"empty, or a function that panics, in processes of their own; then so are the methods of what it returns. A new " +
			"function without a row fails the test.",
		[]suite{{"./internal/misuse", "^TestMisuse$|^TestEveryEntryPointHasARow$", ""}}},
	{"operations", "Operations with any arguments are errors",
		"Every operation of libtorch is called with random arguments, and with integers that overflow, in processes of " +
			"their own. None ends the process, and none but those that are named above takes longer than a minute.",
		[]suite{{"./internal/misuse ./torch", "^TestOperations$|^TestDivisionOverflows$|^TestOperationsThatEndedTheProcess",
			""}}},
	{"goroutines", "A scope may close under other goroutines",
		"Eight goroutines use the tensors of scopes that close, thousands of times, by operations of every form. Each use " +
			"gives the right number, or an error that says what happened.",
		[]suite{{"./torch", "^TestUseWhileScopeCloses$", ""}}},
	{"disk", "A full disk is an error, and the run goes on",
		"A disk in memory is full at 20 random moments for each kind of run. The error says so, what is stored is a " +
			"prefix, and with room again the run ends with the bits of a run that always had it. It needs the rights of root.",
		[]suite{{"./internal/chaos", "^TestDiskFull$", ""}}},
	{"compile", "A killed set-up compiles anew",
		"Set-up gets SIGKILL at random moments of a C++ compile, alone or with the compiler.",
		[]suite{{"./internal/setup", "^TestKilledCompile$", ""}}},
	{"jumps", "Densities that jump are hinted at",
		"NUTS on smooth densities and on such with a jump, without divergences.",
		[]suite{{"./diag", "^TestDensityThatJumps$", ""}}},
	{"folders", "A folder of checkpoints has one run",
		"A second run on the folder starts while the first one is at work.",
		[]suite{{"./infer", "^TestCheckpointIsLocked$", ""}}},
	{"links", "Links and names lead nowhere else",
		"Links, files of something else, folders and devices stand where files and locks are to be written, and folders " +
			"vanish in mid-run; archives hold paths and links that lead outside; names and titles of a report hold scripts.",
		[]suite{{"./internal/atomicfile ./internal/setup ./internal/report ./internal/chaos",
			"NoLink|^TestRegularFilesOnly$|^TestLossInMidRun|^TestUnzipRefuses$|^TestEverythingIsEscaped$", ""}}},
	{"downloads", "Set-up takes only the archive that is known",
		"A local server gives another archive, and leads from https to http.",
		[]suite{{"./internal/setup", "^TestArchiveChecksums$|^TestDownloadStaysEncrypted$", ""}}},
	{"strangers", "Strangers cannot reach a cluster's run",
		"Connections without the token of a server; results that are not signed with it, or are not what was asked for; " +
			"streams, tasks and the disk of a server that vanish in a run. A client says so within 10 seconds.",
		[]suite{{"./cluster", "^TestStrangers$|^TestForged|^TestLoss$", ""}}},
	{"service", "A service counts each update once",
		"The example service gets null, duplicate fields, a second document and trailing bytes; it is killed and comes " +
			"back, a second process starts on its state, a client sends for ever, SIGTERM comes, and every bit of its " +
			"state is flipped.",
		[]suite{{"./examples/service", "^TestBadRequests$|^TestKilledServiceGoesOn$|^TestDamagedState$|^TestCommand$",
			""}}},
	{"panics", "A panic of your functions is an error",
		"Models, observers, Until, Save and Batches panic at some moment of a run, in the goroutine of the caller or in " +
			"another one. The run returns an error that names the function.",
		[]suite{{"./infer ./infer/evidence ./internal/parallel",
			"^TestPanicsNameTheFunction$|^TestPanicsOfTheModel$|^TestGroup$", ""}}},
	{"numbers", "Reports show any range of numbers",
		"Ranges of one subnormal number and of the largest numbers are drawn.",
		[]suite{{"./internal/report", "^TestPackExtremeRanges$", ""}}},
	{"memory", "Long runs need no more memory",
		"60,000 updates: from the 6,000th on the tensors outside scopes are the same bytes, and resident memory grows by " +
			"less than 100 bytes an update.",
		[]suite{{"./infer", "^TestRunInFlatMemory$", ""}}},
}
