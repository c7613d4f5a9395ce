// A driver and an NVRTC of no GPU: NVRTC compiles with the machine's compiler, with a loop in the place of the grid, and
// the driver runs that in main memory. FAKE names what fails.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <string>

static const char *around =
    "#include <cmath>\n"
    "struct Dim { unsigned int x; };\n"
    "extern \"C\" { Dim blockIdx, blockDim, threadIdx, gridDim; }\n"
    "#define __device__\n#define __global__\n";

static std::string source, code;
static void *here = nullptr; // the current context
static int pushed = 0;

static bool fails(const char *name) {
  const char *f = getenv("FAKE");
  return f != nullptr && strcmp(f, name) == 0;
}

static int wrong(bool is, const char *what) {
  if (is)
    fprintf(stderr, "fake: %s\n", what);
  return is ? 1 : 0;
}

extern "C" {
int cuInit(unsigned int flags) { return fails("cuInit") ? 100 : wrong(flags != 0, "flags"); }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal + 40, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return wrong(device != 42, "device");
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &source;
  return wrong(device != 42, "device");
}
int cuCtxPushCurrent_v2(void *context) {
  here = context;
  return wrong(context != &source || ++pushed != 1, "context");
}
int cuCtxPopCurrent_v2(void **context) {
  *context = here, here = nullptr;
  return wrong(--pushed != 0, "context");
}
int cuModuleLoadData(void **module, const void *data) {
  if (wrong(here == nullptr, "no context"))
    return 1;
  *module = dlopen(static_cast<const char *>(data), RTLD_NOW | RTLD_LOCAL);
  return wrong(*module == nullptr, dlerror());
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = dlsym(module, name);
  return wrong(*function == nullptr, name);
}
int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int shared, void *stream, void **a, void **extra) {
  if (fails("cuLaunchKernel"))
    return 719;
  if (wrong(gx == 0 || gy * gz * by * bz != 1 || shared != 0 || stream != nullptr || extra != nullptr || here == nullptr,
            "launch"))
    return 1;
  using Word = unsigned long long;
  using Kernel = void (*)(void *, void *, Word, Word, Word, Word, long long, long long, int);
  struct Dim { unsigned int x; };
  auto dim = [&](const char *name) { return static_cast<Dim *>(dlsym(dlopen(code.c_str(), RTLD_NOW), name)); };
  Dim *block = dim("blockIdx"), *thread = dim("threadIdx");
  dim("gridDim")->x = gx, dim("blockDim")->x = bx;
  for (block->x = 0; block->x < gx; ++block->x)
    for (thread->x = 0; thread->x < bx; ++thread->x)
      reinterpret_cast<Kernel>(function)(*static_cast<void **>(a[0]), *static_cast<void **>(a[1]),
                                         *static_cast<Word *>(a[2]), *static_cast<Word *>(a[3]),
                                         *static_cast<Word *>(a[4]), *static_cast<Word *>(a[5]),
                                         *static_cast<long long *>(a[6]), *static_cast<long long *>(a[7]),
                                         *static_cast<int *>(a[8]));
  return 0;
}
int cuGetErrorString(int error, const char **text) {
  *text = error == 100 ? "no CUDA-capable device is detected" : error == 719 ? "unspecified launch failure" : nullptr;
  return *text == nullptr;
}

int nvrtcCreateProgram(void **program, const char *text, const char *, int, const char *const *, const char *const *) {
  source = text;
  *program = &source;
  return 0;
}
int nvrtcCompileProgram(void *, int n, const char *const *options) {
  // A compiler that is older than the device knows no sm_90.
  const std::string architecture = n > 0 ? options[0] : "";
  if (fails("nvrtcCompileProgram") || fails("sm_90") && architecture == "--gpu-architecture=sm_90")
    return 6;
  const std::string base = std::string(getenv("FAKE_DIR")) + "/kernel";
  std::ofstream(base + ".cpp") << around << source;
  code = base + architecture.substr(architecture.find('=') + 1) + ".so";
  return system(("g++ -O1 -fPIC -shared -o " + code + " " + base + ".cpp").c_str()) == 0 ? 0 : 6;
}
int nvrtcDestroyProgram(void **) { return 0; }
static int size_of(size_t *size) { return *size = code.size() + 1, 0; }
static int copy(char *to) { return memcpy(to, code.c_str(), code.size() + 1), 0; }
static bool binary() { return code.find("sm_") != std::string::npos; }
int nvrtcGetPTXSize(void *, size_t *size) { return binary() ? 1 : size_of(size); }
int nvrtcGetPTX(void *, char *to) { return binary() ? 1 : copy(to); }
int nvrtcGetCUBINSize(void *, size_t *size) { return binary() ? size_of(size) : 1; }
int nvrtcGetCUBIN(void *, char *to) { return binary() ? copy(to) : 1; }
int nvrtcGetProgramLogSize(void *, size_t *size) { return *size = 15, 0; }
int nvrtcGetProgramLog(void *, char *to) { return memcpy(to, "not that device", 15), 0; }
}
