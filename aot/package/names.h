// Names for the generated headers: what a name of the program becomes in C and C++, and which names cannot be had.
//
// What: identifiers for arguments and results, for the functions of custom calls and their attributes; a check of the
//   library's own name. The headers put something in front of a port's name wherever they use it (in_class,
//   Argument_class, MLP_ARGUMENT_CLASS), so that any identifier will do; the others must mean nothing else.
// Guarantees: the headers compile as C99 to C23 and C++17 to C++26 behind any header of C, whatever names there are.
//   The same names always give the same identifiers: '_' goes behind one that cannot stand.
// Source: the keywords of C23 and of the C++26 draft; the macros, types and functions of C's and POSIX's headers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/custom_call.h"

namespace kiln {

// Fails for a name that cannot be both a class and the prefix of symbols, and says why.
absl::Status CheckLibraryName(absl::string_view name);

// Identifiers for the ports of one side (`what`: argument or result), so that macros made of them are unique: a number
// goes behind a name that comes twice. Names of the config are kept as they are, or fail.
absl::StatusOr<std::vector<std::string>> NamePorts(const std::vector<std::string>& names, bool from_config,
                                                   absl::string_view what);

// Identifiers for the entries of a library, which are structs in its class and parts of its functions' names: unique,
// and with '_' behind what means something there. Fails for two that differ by what kiln itself puts behind a name.
absl::StatusOr<std::vector<std::string>> NameEntries(const std::vector<std::string>& names, const std::string& library);

// A member of a struct of the C++ header. Names in capitals, as macros of headers have, get '_' behind them.
std::string MemberName(absl::string_view name);

// Why no function of the host program can be the target of a custom call; empty if one can.
std::string WhyNotATarget(absl::string_view target, const std::string& library);
// The C functions that the header declares for calls, in their order.
std::vector<std::string> NameCallTargets(const std::vector<CustomCallSignature>& calls, const std::string& library);
// The fields of a typed call's struct, in the order of its attributes.
std::vector<std::string> NameAttributes(const CustomCallSignature& call, const std::string& library);

}  // namespace kiln
