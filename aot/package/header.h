// The generated headers of a model.
#pragma once

#include <string>

namespace kiln {

struct CompiledModel;

// NAME_c.h: C11, no dependency; the C++ header builds on it.
std::string CHeader(const CompiledModel& model);
// NAME.h: a class with typed spans, errors as values, a context with its arena.
std::string CppHeader(const CompiledModel& model);

}  // namespace kiln
