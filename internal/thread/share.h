#ifndef KELVIN_SHARE_H
#define KELVIN_SHARE_H

// Runs f(of, part) for each part below parts and returns when all are done: on so many threads as are set, less those
// that share parts of their own meanwhile. Which thread runs a part is left to chance.
void kelvin_share_parts(long parts, void (*f)(const void *of, long part), const void *of);

void kelvin_share_threads(int n);
#endif
