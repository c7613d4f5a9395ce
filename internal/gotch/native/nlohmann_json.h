#pragma once
// From 2.10 on ATen/functorch/Interpreter.h includes this header, which libtorch's packages do not have. Where the
// machine has the library itself, that one is taken. Elsewhere these declarations do: Kelvin turns no interpreter into
// JSON, and code that did would not link.
#if __has_include_next(<nlohmann/json.hpp>)
#include_next <nlohmann/json.hpp>
#else
#include <string>

namespace nlohmann {

class json {
public:
  json();
  template <typename Value> explicit json(const Value &);
  static json parse(const std::string &);
  template <typename Value> Value get() const;
  std::string dump() const;
};

} // namespace nlohmann
#endif
