#include "thread.h"

static _Thread_local kelvin_thread state;

kelvin_thread *kelvin_this_thread(void) { return &state; }
