// Strings as MLIR writes them.
//
// What: text in double quotes; behind a backslash stand a quote, a backslash, n, t, or a byte's two hexadecimal digits.
// Why: C's escapes, which HLO text has, read \22 as octal. Attributes of typed custom calls keep MLIR's form in HLO.
// Source: MLIR's lexer (Token::getStringValue) and llvm::printEscapedString.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/scanner.h"

namespace kiln {

// Reads a quoted string at the scanner's place; fails with that place.
absl::StatusOr<std::string> ReadMlirString(Scanner* s);
// What a quoted string means; text without quotes means itself.
std::string MlirStringValue(absl::string_view text);
std::string QuoteMlir(absl::string_view text);

}  // namespace kiln
