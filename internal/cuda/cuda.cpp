// The driver and NVRTC are loaded by name while a program runs: no header of CUDA is needed to build, and a machine
// without a GPU needs neither of them.
#include "cuda.h"
#include "kernel.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace {

// The parts of the two interfaces that are used. All of them are there since CUDA 11.2. Handles are pointers.
struct Interface {
  int (*cuInit)(unsigned int);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuCtxPushCurrent)(void *);
  int (*cuCtxPopCurrent)(void **);
  int (*cuModuleLoadData)(void **, const void *);
  int (*cuModuleGetFunction)(void **, void *, const char *);
  int (*cuLaunchKernel)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, void *, void **, void **);
  int (*cuGetErrorString)(int, const char **);
  int (*nvrtcCreateProgram)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*nvrtcCompileProgram)(void *, int, const char *const *);
  int (*nvrtcDestroyProgram)(void **);
  int (*nvrtcGetPTXSize)(void *, size_t *);
  int (*nvrtcGetPTX)(void *, char *);
  int (*nvrtcGetCUBINSize)(void *, size_t *);
  int (*nvrtcGetCUBIN)(void *, char *);
  int (*nvrtcGetProgramLogSize)(void *, size_t *);
  int (*nvrtcGetProgramLog)(void *, char *);
};

constexpr int attribute_major = 75, attribute_minor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
constexpr unsigned int threads = 256, most_blocks = 1u << 16;

struct Failure {
  std::string why;
};

template <typename F> bool find(const std::vector<void *> &libraries, const char *name, F &f) {
  for (void *library : libraries)
    if (void *symbol = dlsym(library, name)) {
      f = reinterpret_cast<F>(symbol);
      return true;
    }
  return false;
}

// Libraries stay loaded. The driver can be left out.
Interface load(const char *names, bool driver) {
  std::vector<void *> libraries;
  std::string tried;
  for (const char *name = names; *name; name += strlen(name) + 1) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      libraries.push_back(library);
    tried += std::string(tried.empty() ? "" : ", ") + name;
  }
  Interface i{};
  std::string missing;
#define KELVIN_FIND(field, symbol)          \
  if (!find(libraries, symbol, i.field))    \
    missing += std::string(missing.empty() ? "" : ", ") + symbol;
#define KELVIN_NAMED(field) KELVIN_FIND(field, #field)
  if (driver) {
    KELVIN_NAMED(cuInit)
    KELVIN_NAMED(cuDeviceGet)
    KELVIN_NAMED(cuDeviceGetAttribute)
    KELVIN_NAMED(cuDevicePrimaryCtxRetain)
    KELVIN_FIND(cuCtxPushCurrent, "cuCtxPushCurrent_v2")
    KELVIN_FIND(cuCtxPopCurrent, "cuCtxPopCurrent_v2")
    KELVIN_NAMED(cuModuleLoadData)
    KELVIN_NAMED(cuModuleGetFunction)
    KELVIN_NAMED(cuLaunchKernel)
    KELVIN_NAMED(cuGetErrorString)
  }
  KELVIN_NAMED(nvrtcCreateProgram)
  KELVIN_NAMED(nvrtcCompileProgram)
  KELVIN_NAMED(nvrtcDestroyProgram)
  KELVIN_NAMED(nvrtcGetPTXSize)
  KELVIN_NAMED(nvrtcGetPTX)
  KELVIN_NAMED(nvrtcGetCUBINSize)
  KELVIN_NAMED(nvrtcGetCUBIN)
  KELVIN_NAMED(nvrtcGetProgramLogSize)
  KELVIN_NAMED(nvrtcGetProgramLog)
#undef KELVIN_NAMED
#undef KELVIN_FIND
  if (!missing.empty())
    throw Failure{"of the libraries " + tried + " none has " + missing};
  return i;
}

void check(const Interface &i, const char *what, int code) {
  if (code == 0)
    return;
  const char *text = nullptr;
  if (i.cuGetErrorString(code, &text) != 0 || text == nullptr)
    text = "an unknown error";
  throw Failure{std::string(what) + ": " + text + " (" + std::to_string(code) + ")"};
}

// Compiles for an architecture: sm_90 gives code of that device alone, which a driver older than NVRTC loads too,
// compute_90 what the driver compiles for any later device. Empty where NVRTC cannot, with the reason in log.
std::string compile(const Interface &i, const std::string &architecture, std::string &log) {
  const std::string source = std::string(kelvin_prelude) + kelvin_source;
  const std::string option = "--gpu-architecture=" + architecture;
  const char *options[] = {option.c_str(), "--fmad=false"};
  const bool binary = architecture.compare(0, 3, "sm_") == 0;
  void *program = nullptr;
  std::string code;
  if (i.nvrtcCreateProgram(&program, source.c_str(), "kelvin_streams.cu", 0, nullptr, nullptr) != 0) {
    log = "NVRTC makes no program";
    return code;
  }
  size_t size = 0;
  if (i.nvrtcCompileProgram(program, 2, options) == 0) {
    const bool sized = (binary ? i.nvrtcGetCUBINSize : i.nvrtcGetPTXSize)(program, &size) == 0;
    code.resize(sized ? size : 0);
    if (code.empty() || (binary ? i.nvrtcGetCUBIN : i.nvrtcGetPTX)(program, &code[0]) != 0) {
      code.clear();
      log = "NVRTC gives no code";
    }
  } else if (i.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
    log.resize(size);
    if (i.nvrtcGetProgramLog(program, &log[0]) != 0)
      log = "NVRTC says nothing";
  }
  i.nvrtcDestroyProgram(&program);
  return code;
}

// The primary context of a device is the one that libtorch works in.
struct Current {
  const Interface &i;
  Current(const Interface &i, void *context) : i(i) { check(i, "cuCtxPushCurrent", i.cuCtxPushCurrent(context)); }
  ~Current() {
    void *context = nullptr;
    i.cuCtxPopCurrent(&context);
  }
};

template <typename F> char *guarded(F f) {
  try {
    f();
    return nullptr;
  } catch (const Failure &e) {
    return strdup(e.why.c_str());
  } catch (const std::exception &e) {
    return strdup(e.what());
  }
}

} // namespace

struct kelvin_cuda {
  Interface i;
  void *context, *doubles, *floats;
};

char *kelvin_cuda_load(int device, const char *libraries, kelvin_cuda **out) {
  return guarded([&] {
    kelvin_cuda k{};
    const Interface &i = k.i = load(libraries, true);
    int handle = 0, major = 0, minor = 0;
    check(i, "cuInit", i.cuInit(0));
    check(i, "cuDeviceGet", i.cuDeviceGet(&handle, device));
    check(i, "cuDeviceGetAttribute", i.cuDeviceGetAttribute(&major, attribute_major, handle));
    check(i, "cuDeviceGetAttribute", i.cuDeviceGetAttribute(&minor, attribute_minor, handle));
    const std::string version = std::to_string(major) + std::to_string(minor);
    std::string code, log, first;
    for (const std::string &architecture : {"sm_" + version, "compute_" + version, std::string("compute_80")}) {
      code = compile(i, architecture, log);
      if (!code.empty())
        break;
      if (first.empty())
        first = log;
    }
    if (code.empty())
      throw Failure{"NVRTC does not compile for a device of capability " + version + ": " + first};
    check(i, "cuDevicePrimaryCtxRetain", i.cuDevicePrimaryCtxRetain(&k.context, handle));
    Current current(i, k.context);
    void *module = nullptr;
    check(i, "cuModuleLoadData", i.cuModuleLoadData(&module, code.c_str()));
    check(i, "cuModuleGetFunction", i.cuModuleGetFunction(&k.doubles, module, "kelvin_doubles"));
    check(i, "cuModuleGetFunction", i.cuModuleGetFunction(&k.floats, module, "kelvin_floats"));
    *out = new kelvin_cuda(k);
  });
}

char *kelvin_cuda_compile(const char *libraries, const char *architecture, char **code, size_t *size) {
  return guarded([&] {
    std::string log;
    const std::string made = compile(load(libraries, false), architecture, log);
    if (made.empty())
      throw Failure{log};
    *size = made.size();
    *code = static_cast<char *>(malloc(made.size()));
    memcpy(*code, made.data(), made.size());
  });
}

// A null stream is the default stream of the device, on which libtorch works where nobody has chosen another: the
// kernel comes after what was asked for before, and before what is asked for later, the freeing of chains too.
char *kelvin_cuda_fill(kelvin_cuda *k, int is_float, void *out, void *chains, uint64_t first, uint64_t step,
                       uint64_t seed, uint64_t offset, int64_t rows, int64_t n, int normal) {
  return guarded([&] {
    const int64_t pairs = rows * ((n + 1) / 2);
    if (pairs <= 0)
      return;
    const int64_t blocks = (pairs + threads - 1) / threads;
    void *arguments[] = {&out, &chains, &first, &step, &seed, &offset, &rows, &n, &normal};
    Current current(k->i, k->context);
    check(k->i, "cuLaunchKernel",
          k->i.cuLaunchKernel(is_float ? k->floats : k->doubles,
                              static_cast<unsigned int>(blocks < most_blocks ? blocks : most_blocks), 1, 1, threads, 1,
                              1, 0, nullptr, arguments, nullptr));
  });
}

void kelvin_cuda_serial(int is_float, void *out, void *chains, uint64_t first, uint64_t step, uint64_t seed,
                        uint64_t offset, int64_t rows, int64_t n, int normal) {
  const auto *c = static_cast<const unsigned long long *>(chains);
  if (is_float)
    kelvin_floats(static_cast<float *>(out), c, first, step, seed, offset, rows, n, normal);
  else
    kelvin_doubles(static_cast<double *>(out), c, first, step, seed, offset, rows, n, normal);
}
