#ifndef KELVIN_THREAD_H
#define KELVIN_THREAD_H

enum { KELVIN_THREAD_LEVELS = 16 };

// What a thread is doing. Each thread has one of its own.
typedef struct kelvin_thread {
  long recording;    // the number of the recording in progress; 0 for none
  int gradient_only; // depth of evaluations of which first derivatives alone are taken
  long short_steps;  // at most so many steps has a loop over time that can be shortened; 0 for any number
  long full_steps;   // those of the loops that were shortened; 0 for none, -1 for several numbers
  int evaluations;   // depth of evaluations that are to be fast: they read no values to check them
  int levels;        // of vmap that are open
  long level[KELVIN_THREAD_LEVELS], size[KELVIN_THREAD_LEVELS];
} kelvin_thread;

kelvin_thread *kelvin_this_thread(void);
#endif
